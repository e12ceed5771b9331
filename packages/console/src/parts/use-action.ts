import { useState } from 'preact/hooks';

/** What came of the last action. */
export interface Actions {
  /** How many have ended: part of the key of what they change. */
  readonly count: number;
  readonly outcome: string | undefined;
  readonly failure: Error | undefined;
  /** Runs an action, which returns what to say of it. */
  readonly act: (action: () => Promise<string>) => Promise<void>;
}

/** Runs actions of a page. */
export function useAction(): Actions {
  const [state, setState] = useState<Omit<Actions, 'act'>>({ count: 0, outcome: undefined, failure: undefined });
  const act = async (action: () => Promise<string>) => {
    const ended = await action().then(
      (outcome) => ({ outcome, failure: undefined }),
      (failure: Error) => ({ outcome: undefined, failure }),
    );
    setState(({ count }) => ({ ...ended, count: count + 1 }));
  };
  return { ...state, act };
}
