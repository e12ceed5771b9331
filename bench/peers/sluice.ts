import type { ServiceName } from '../../tests/kit/service.ts';
import { System } from '../processes/system.ts';
import type { Peer, PeerProcess } from './peer.ts';

/** Starts ingest-api and writer, with query-api beside them. */
export async function startSluice(running: AsyncDisposableStack): Promise<Peer> {
  const { pipeline, engines } = running.use(await System.start());
  const processOf = (name: ServiceName): PeerProcess => {
    pipeline.supervise(name);
    return {
      get pid() {
        return pipeline.services[name].pid;
      },
      killAndRestart: async () => {
        await pipeline.services[name].kill9();
        await pipeline.services[name].ready();
      },
    };
  };
  return {
    ...{ engines, form: 'submissions', key: pipeline.key, time: 'timestamp', uuid: 'toString(uuid)' },
    table: `${pipeline.database}.events`,
    url: pipeline.services['ingest-api'].url,
    processes: { ingest: processOf('ingest-api'), sink: processOf('writer') },
  };
}
