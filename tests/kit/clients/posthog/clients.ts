import type { RecordedProgram } from '../clients.ts';

/** A client of PostHog as it is published. */
export interface PosthogClient {
  /** Also the name of its workspace and of the folder with its recorded requests. */
  readonly name: string;
  readonly runsIn: NodeProgram | PythonProgram | JavaProgram | RecordedProgram | PosthogPage;
  /** The names of the events of the step `identify`. */
  readonly identifies: readonly string[];
  /** Whether its `$identify` says who was anonymous before. */
  readonly namesVisitor: boolean;
  /** Which of the two identifiers its alias has as `distinct_id`. */
  readonly aliasOf: 'user' | 'other';
  /** Where it sends events. */
  readonly path: string;
}

interface NodeProgram {
  readonly platform: 'node';
  /** A package of `packages/package.json`. */
  readonly module: string;
}

interface PythonProgram {
  readonly platform: 'python';
  /** The `<name>` of `packages/python-<name>.txt`. */
  readonly environment: string;
}

interface JavaProgram {
  readonly platform: 'java';
  /** The `<name>` of `packages/java-<name>.xml`. */
  readonly jars: string;
}

export interface PosthogPage {
  readonly platform: 'browser';
  /** What the client is loaded with, beside the address. */
  readonly options: object;
  /** The page is left as soon as the events are captured. Default: it stays until all are received. */
  readonly left?: true;
}

const node: readonly PosthogClient[] = ['4.18.0', '5.70.0'].map((version) => {
  const name = `posthog-node-${version}`;
  return {
    name,
    runsIn: { platform: 'node', module: name },
    identifies: ['identify'],
    namesVisitor: version !== '4.18.0',
    aliasOf: 'user',
    path: '/batch/',
  };
});

const python: readonly PosthogClient[] = (
  [
    ['3.25.0', ['identify', '$set_once']],
    // It has no identify any more.
    ['7.91.1', ['$set', '$set_once']],
  ] as const
).map(([version, identifies]) => ({
  name: `posthog-python-${version}`,
  runsIn: { platform: 'python', environment: `posthog-${version}` },
  identifies,
  namesVisitor: false,
  aliasOf: 'other',
  path: '/batch/',
}));

const java: PosthogClient = {
  name: 'posthog-java-2.3.3',
  runsIn: { platform: 'java', jars: 'posthog-server-2.3.3' },
  identifies: ['identify'],
  namesVisitor: false,
  aliasOf: 'user',
  path: '/batch',
};

const go: PosthogClient = {
  name: 'posthog-go-1.5.2',
  runsIn: { platform: 'recorded', language: 'go' },
  // Its identify cannot set once.
  identifies: ['identify', '$set_once'],
  namesVisitor: false,
  aliasOf: 'user',
  path: '/batch/',
};

const php = (name: string): PosthogClient => ({
  name,
  runsIn: { platform: 'recorded', language: 'php' },
  identifies: ['identify'],
  namesVisitor: false,
  aliasOf: 'user',
  path: '/batch/',
});

const ruby = (name: string): PosthogClient => ({
  name,
  runsIn: { platform: 'recorded', language: 'ruby' },
  // Its identify cannot set once.
  identifies: ['identify', '$set_once'],
  namesVisitor: false,
  aliasOf: 'user',
  path: '/batch/',
});

const page = (name: string, runsIn: Omit<PosthogPage, 'platform'>): PosthogClient => ({
  name,
  runsIn: { platform: 'browser', ...runsIn },
  identifies: ['identify'],
  namesVisitor: true,
  aliasOf: 'user',
  path: '/e/',
});

export const POSTHOG_CLIENTS: readonly PosthogClient[] = [
  ...node,
  ...python,
  java,
  go,
  php('posthog-php-4.13.2'),
  php('posthog-php-4.13.2-socket'),
  ruby('posthog-ruby-3.23.2'),
  ruby('posthog-ruby-3.23.2-single'),
  page('posthog-js-1.449.2', { options: {} }),
  page('posthog-js-1.449.2-uncompressed', { options: { disable_compression: true } }),
  page('posthog-js-1.449.2-page-left', { options: { request_queue_config: { flush_interval_ms: 5_000 } }, left: true }),
];

/** The key of a client's workspace, which its recorded requests carry. */
export function posthogKeyOf({ name }: PosthogClient): string {
  return `key-of-${name}`;
}
