import { useState } from 'preact/hooks';
import { type Loaded, useLoad } from '../use-load.ts';

export interface StoppableLoad<Data> extends Loaded<Data> {
  readonly isStopped: boolean;
  stop(): void;
}

/** Loads data whenever the key changes, as `useLoad` does, until somebody stops it; `retry` loads what was stopped as well. */
export function useStoppableLoad<Data>(
  key: string,
  load: (signal: AbortSignal) => Promise<Data>,
): StoppableLoad<Data | undefined> {
  const [stopped, setStopped] = useState<string>();
  const isStopped = stopped === key;
  const loaded = useLoad(`${key} ${isStopped}`, async (signal) => (isStopped ? undefined : await load(signal)));
  return {
    ...loaded,
    isStopped,
    stop: () => setStopped(key),
    retry: isStopped ? () => setStopped(undefined) : loaded.retry,
  };
}
