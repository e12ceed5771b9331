import type { ComponentType } from 'preact';
import { Problem } from './problem.tsx';
import { useLoad } from './use-load.ts';

interface LazyProps<Props> {
  /** Imports the module whose default export is the component. It is one function, whoever shows the component. */
  readonly load: () => Promise<{ readonly default: ComponentType<Props> }>;
  readonly props: Props;
}

const loaded = new Map<unknown, unknown>();

/** A component that is loaded when it is first shown, so that the first page is quick. */
export function Lazy<Props extends object>({ load, props }: LazyProps<Props>) {
  const { data = loaded.get(load), error } = useLoad('', async () => {
    const module = await load();
    loaded.set(load, module.default);
    return module.default;
  });
  // Another version was installed meanwhile, or query-api is away.
  if (error) return <Problem error={new Error('A part of this page could not be loaded: load the page again.')} />;
  const Component = data as ComponentType<Props> | undefined;
  return Component ? <Component {...props} /> : <p class="muted late">Loading …</p>;
}
