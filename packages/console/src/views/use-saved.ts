import { useRef, useState } from 'preact/hooks';
import { type Dashboard, getJson, sendJson } from '../base/base.ts';

/** A change of a dashboard: what is missing stays as it is. */
interface Change {
  readonly name?: string;
  readonly tiles?: Readonly<Dashboard['tiles']>;
}

/**
 * Holds a dashboard whose changes are shown at once and then stored, one after the other. After one that could not be stored,
 * what is stored is shown.
 */
export function useSaved(path: string, loaded: Dashboard) {
  const [dashboard, setDashboard] = useState(loaded);
  const [failure, setFailure] = useState<Error>();
  const [waiting, setWaiting] = useState(0);
  const last = useRef<Promise<void>>(Promise.resolve());
  const store = async ({ tiles, ...rest }: Change) => {
    const body = { ...rest, ...(tiles && { tiles: tiles.map(({ view, width }) => ({ view, width })) }) };
    try {
      await sendJson(path, 'PATCH', body);
    } catch (error) {
      setFailure(error as Error);
      setDashboard(await getJson<Dashboard>(path, new AbortController().signal).catch(() => loaded));
    }
  };
  const change = (given: Change) => {
    setFailure(undefined);
    setDashboard(({ name, tiles, ...rest }) => ({
      ...rest,
      name: given.name ?? name,
      tiles: [...(given.tiles ?? tiles)],
    }));
    setWaiting((count) => count + 1);
    last.current = last.current.then(() => store(given)).finally(() => setWaiting((count) => count - 1));
  };
  return { dashboard, change, failure, isSaving: waiting > 0 };
}
