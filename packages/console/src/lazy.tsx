import type { ComponentType } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { Problem } from './problem.tsx';

interface LazyProps<Props> {
  /** Imports the module whose default export is the component. It is one function, whoever shows the component. */
  readonly load: () => Promise<{ readonly default: ComponentType<Props> }>;
  readonly props: Props;
}

/** What was loaded, by its function. */
const loaded = new Map<unknown, unknown>();

/** A component that is loaded when it is first shown, so that the first page is quick. */
export function Lazy<Props extends object>({ load, props }: LazyProps<Props>) {
  const [state, setState] = useState<'loading' | 'failed' | 'loaded'>('loading');
  const Component = loaded.get(load) as ComponentType<Props> | undefined;
  useLayoutEffect(() => {
    if (Component) return;
    load().then(
      (module) => {
        loaded.set(load, module.default);
        setState('loaded');
      },
      () => setState('failed'),
    );
  }, [load]);
  if (Component) return <Component {...props} />;
  // Another version was installed meanwhile, or query-api is away.
  const error = new Error('A part of this page could not be loaded: load the page again.');
  return state === 'failed' ? <Problem error={error} /> : <p class="muted late">Loading …</p>;
}
