import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { explain, until } from '@sluice/shared/testing/until';
import { expect, inject } from 'vitest';
import { sluice } from './backups.ts';
import { type Pipeline, type PipelineServer, startPipeline } from './pipeline.ts';
import { entryOf, type RangedServer, startRangedServer } from './ranged-server.ts';
import type { Service } from './service.ts';

const DOCUMENT = new URL('../../docs/operate/servers.md', import.meta.url);

const NPM = 'npm run servers -- ';

/** What the document says that stands for the group of the writers of this test. */
const GROUP = 'sluice-writer';

/** The blocks of a section, in their order: a file of servers, or commands. */
async function blocksOf(heading: string): Promise<string[]> {
  const text = await readFile(DOCUMENT, 'utf8');
  const section = text.split(/^#+ /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  return [...section.matchAll(/(?:^ {4}.*\n)+/gm)].map(([block]) => block.replaceAll(/^ {4}/gm, ''));
}

/** An operator who does what the document says, with servers of this machine in place of `http://clickhouse-1:8123` and so on. */
class Operator {
  readonly #running: Pipeline;
  readonly #writers = new Map<string, Service>();

  constructor(running: Pipeline) {
    this.#running = running;
  }

  /** Does everything of a section. A server that is filled gets a writer. */
  async follow(heading: string, servers: readonly RangedServer[]): Promise<void> {
    const blocks = await blocksOf(heading);
    expect(blocks.length).toBeGreaterThan(1);
    for (const block of blocks) {
      if (block.startsWith('{')) await this.#running.writeServers(this.#entriesOf(block, servers));
      else for (const command of block.trim().split('\n')) await this.#run(command);
    }
  }

  async stopWriter(server: string): Promise<void> {
    await this.#writers.get(server)?.stop();
  }

  #entriesOf(block: string, servers: readonly RangedServer[]): Record<string, PipelineServer> {
    const content = JSON.parse(block) as { servers: (PipelineServer & { readonly name: string })[] };
    const entries = content.servers.map(({ name, url, group, ...others }) => {
      const server = servers[Number(/\d+/.exec(url)?.[0]) - 1];
      if (!server) throw new Error(`there is no ${url}`);
      const own = group === GROUP && { group: this.#running.environment['KAFKA_GROUP_ID'] };
      return [name, { ...entryOf(server), ...own, ...others }] as const;
    });
    return Object.fromEntries(entries);
  }

  async #run(line: string): Promise<void> {
    expect(line.startsWith(NPM), line).toBe(true);
    const file = String(this.#running.environment['CLICKHOUSE_SERVERS_FILE']);
    const args = line.slice(NPM.length).replace('servers.json', file).split(' ');
    const [command] = args;
    const run = () => sluice(this.#running, ['servers', ...args, ...(command === 'copy' ? ['--yes'] : [])]);
    let output = '';
    const isDone = async () => {
      const end = await run();
      output = end.output;
      return end.code === 0;
    };
    // "When it has caught up, nothing is wrong."
    if (command === 'status') await until('nothing to be wrong', isDone).catch(explain(() => output));
    else expect(await isDone(), `${line}\n${output}`).toBe(true);
    const [, filled] = /--to (\S+)/.exec(line) ?? [];
    if (filled !== undefined) this.#writers.set(filled, await this.#running.startWriter(filled));
  }
}

/**
 * Runs the commands of docs/operate/servers.md, and expects that events are served without the server that each section is about.
 *
 * @param name of the pipeline
 * @param isWhole whether a lost server is replaced and one is split as well, after a mirror was added
 */
export async function followServerDocument(name: string, { isWhole }: { readonly isWhole: boolean }): Promise<void> {
  await using folder = await makeTempDir();
  const dataDir = join(folder.path, 'a2');
  await using one = await startRangedServer();
  await using two = await startRangedServer({ dataDir });
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: one.engine.url,
    name,
    servers: { a1: { ...entryOf(one), group: `${name}-writer` } },
    env: { KAFKA_PARTITIONS: '48' },
    // On a busy machine a server may take more than a minute to catch up.
    envOf: { 'query-api': { READ_STALE_MS_MAX: '600000' } },
  });
  const operator = new Operator(running);
  let sent = 0;
  const send = async () => {
    const events = Array.from({ length: 20 }, (_, index) => ({ event: `e${index}`, properties: { index } }));
    const { status } = await running.submit({ foreignUserId: 'u', foreignUserGroupId: 'g', events });
    expect(status).toBe(202);
    sent += events.length;
  };
  await send();
  await running.settled(sent);

  await operator.follow('Add a mirror', [one, two]);
  await one.engine.kill9();
  await send();
  await running.settled(sent);
  if (!isWhole) return;
  await one.engine.restart();

  await operator.stopWriter('a2');
  await two.engine.kill9();
  await rm(dataDir, { recursive: true });
  await two.engine.restart();
  await send();
  await operator.follow('Replace a server', [one, two]);
  await running.settled(sent);

  await running.writeServers({ a1: { ...entryOf(one), group: `${name}-writer` } });
  await operator.stopWriter('a2');
  await using b1 = await startRangedServer();
  await using b2 = await startRangedServer();
  await operator.follow('Split a server', [one, b1, b2]);
  await running.services.writer.stop();
  await one.engine.kill9();
  await send();
  await running.settled(sent);
}
