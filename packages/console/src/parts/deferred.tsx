import type { ComponentType } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { Problem } from './problem.tsx';

/**
 * Returns a component whose code is loaded when it is shown first. `load` must be a function with an `import()`, so that
 * the build puts the code into a file of its own.
 */
export function deferred<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let Loaded: ComponentType<Props> | undefined;
  return function Deferred(props: Props) {
    const [error, setError] = useState<Error>();
    const [, setIsLoaded] = useState(Loaded !== undefined);
    // At once: an effect after the next frame would load it later.
    useLayoutEffect(() => {
      if (Loaded) return;
      load().then(
        (component) => {
          Loaded = component;
          setIsLoaded(true);
        },
        // Another version was installed meanwhile, or query-api is away.
        () => setError(new Error('A part of this page could not be loaded: load the page again.')),
      );
    }, []);
    if (error) return <Problem error={error} />;
    return Loaded ? <Loaded {...props} /> : <p class="muted late">Loading …</p>;
  };
}
