import { useState } from 'preact/hooks';
import { type Loaded, useLoad } from '../use-load.ts';

export interface StoppableLoad<Data> extends Loaded<Data> {
  readonly isStopped: boolean;
  stop(): void;
  retry(): void;
}

/** Loads data whenever the key changes, as `useLoad` does, until somebody stops it. */
export function useStoppableLoad<Data>(
  key: string,
  load: (signal: AbortSignal) => Promise<Data>,
): StoppableLoad<Data | undefined> {
  const [stopped, setStopped] = useState<string>();
  const [attempts, setAttempts] = useState(0);
  const attempt = `${attempts} ${key}`;
  const isStopped = stopped === attempt;
  const loaded = useLoad(`${attempt} ${isStopped}`, async (signal) => (isStopped ? undefined : await load(signal)));
  return {
    ...loaded,
    isStopped,
    stop: () => setStopped(attempt),
    retry: () => setAttempts(attempts + 1),
  };
}
