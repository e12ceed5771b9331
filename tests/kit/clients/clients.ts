import { CALLS, type TestCall } from './calls.ts';

/** A client of others as it is published. */
export interface ThirdPartyClient {
  /** Also the name of its workspace and of the folder with its recorded requests. */
  readonly name: string;
  readonly runsIn: NodeProgram | PythonProgram | JavaProgram | RecordedProgram | BrowserPage;
  /** `library` in the context of its calls. */
  readonly library: { readonly name: string; readonly version: string; readonly consumer?: string };
  /** The calls of `CALLS` that it has methods for. */
  readonly calls: readonly TestCall[];
  /** Where it sends them. */
  readonly paths: readonly string[];
}

interface NodeProgram {
  readonly platform: 'node';
  readonly program: 'segment-node.ts' | 'rudder-node.ts';
  /** A package of `packages/package.json`. */
  readonly module: string;
}

interface PythonProgram {
  readonly platform: 'python';
  /** The `<name>` of `packages/python-<name>.txt`. */
  readonly environment: string;
  readonly module: string;
}

interface JavaProgram {
  readonly platform: 'java';
  /** The `<name>` of `packages/java-<name>.xml`. */
  readonly jars: string;
  /** Its class. */
  readonly module: string;
}

/** No test runs it: its recorded requests are sent again. */
export interface RecordedProgram {
  readonly platform: 'recorded';
  readonly language: 'go' | 'php' | 'ruby';
}

export interface BrowserPage {
  readonly platform: 'browser';
  /** The built file of the client, in `node_modules`. */
  readonly script: string;
  readonly api: 'segment' | 'rudder';
  /** What the client is loaded with, beside the address and the key. */
  readonly options: object;
  /** The page is left as soon as the calls are made. Default: it stays until all are delivered. */
  readonly left?: true;
}

/**
 * The page whose clients make the calls. Its origin is another one than ingest-api's, and a secure context, as all of
 * localhost.
 */
export const PAGE = {
  origin: 'http://app.localhost',
  url: 'http://app.localhost/?from=tests',
  path: '/',
  search: '?from=tests',
  title: 'A page',
} as const;

/** The key of a client's workspace, which its recorded requests carry. */
export function keyOf({ name }: ThirdPartyClient): string {
  return `key-of-${name}`;
}

const segmentNode: readonly ThirdPartyClient[] = ['1.3.0', '2.3.0', '3.0.0', '3.1.0'].map((version) => {
  const name = `segment-analytics-node-${version}`;
  return {
    name,
    runsIn: { platform: 'node', program: 'segment-node.ts', module: name },
    library: { name: '@segment/analytics-node', version },
    calls: CALLS,
    paths: ['/v1/batch'],
  };
});

const rudderNode: ThirdPartyClient = {
  name: 'rudder-sdk-node-3.0.13',
  runsIn: { platform: 'node', program: 'rudder-node.ts', module: '@rudderstack/rudder-sdk-node' },
  library: { name: 'analytics-node', version: '3.0.13' },
  calls: CALLS,
  paths: ['/v1/batch'],
};

const python: readonly ThirdPartyClient[] = (
  [
    ['segment', '2.3.3', 'segment'],
    ['segment', '2.4.0', 'segment'],
    ['rudder', '2.1.9', 'rudderstack'],
  ] as const
).map(([vendor, version, module]) => ({
  name: `${vendor}-python-${version}`,
  runsIn: { platform: 'python', environment: `${vendor}-${version}`, module },
  library: { name: 'analytics-python', version },
  calls: CALLS,
  paths: ['/v1/batch'],
}));

const withoutCategory = (types: readonly TestCall['type'][]): readonly TestCall[] =>
  CALLS.map(({ category, ...call }) => ({ ...call, ...(category && !types.includes(call.type) && { category }) }));

const java = (name: string, version: string, module: string, path: string): ThirdPartyClient => ({
  name: `${name}-java-${version}`,
  runsIn: { platform: 'java', jars: `${name}-${version}`, module },
  library: { name: 'analytics-java', version },
  calls: withoutCategory(['screen']),
  paths: [path],
});

const go = (name: string, version: string, saidVersion: string): ThirdPartyClient => ({
  name: `${name}-go-${version}`,
  runsIn: { platform: 'recorded', language: 'go' },
  library: { name: 'analytics-go', version: saidVersion },
  calls: withoutCategory(['page', 'screen']),
  paths: ['/v1/batch'],
});

/** Their timestamps are whole seconds. */
const php = (name: string, libraryName: string, version: string, consumer: string): ThirdPartyClient => ({
  name,
  runsIn: { platform: 'recorded', language: 'php' },
  library: { name: libraryName, version, consumer },
  calls: CALLS.map(({ timestamp, ...call }) => ({
    ...call,
    ...(timestamp && { timestamp: new Date(Math.floor(timestamp.getTime() / 1_000) * 1_000) }),
  })),
  paths: ['/v1/batch'],
});

const ruby = (name: string, libraryName: string, version: string, path: string): ThirdPartyClient => ({
  name,
  runsIn: { platform: 'recorded', language: 'ruby' },
  library: { name: libraryName, version },
  calls: withoutCategory(['page']),
  paths: [path],
});

type PageOptions = Pick<BrowserPage, 'options' | 'left'>;

const segmentBrowser = (name: string, page: PageOptions, paths: readonly string[]): ThirdPartyClient => ({
  name,
  runsIn: { platform: 'browser', script: '@segment/analytics-next/dist/umd/index.js', api: 'segment', ...page },
  library: { name: 'analytics.js', version: 'next-1.84.3' },
  calls: CALLS,
  paths,
});

const rudderBrowser = (name: string, page: PageOptions, paths: readonly string[]): ThirdPartyClient => ({
  name,
  runsIn: {
    platform: 'browser',
    // The variant that loads nothing from a CDN.
    script: '@rudderstack/analytics-js/dist/npm/modern/bundled/umd/index.js',
    api: 'rudder',
    ...page,
  },
  library: { name: 'RudderLabs JavaScript SDK', version: '3.34.1' },
  calls: CALLS.filter(({ type }) => type !== 'screen'),
  paths,
});

const batching = (size: number, timeout: number) => ({
  deliveryStrategy: { strategy: 'batching', config: { size, timeout } },
});

export const CLIENTS: readonly ThirdPartyClient[] = [
  ...segmentNode,
  rudderNode,
  ...python,
  java('segment', '3.5.4', 'com.segment.analytics.Analytics', '/v1/import/'),
  java('rudder', '3.1.2', 'com.rudderstack.sdk.java.analytics.RudderAnalytics', '/v1/batch'),
  go('segment', '3.3.0', '3.0.0'),
  go('rudder', '4.2.3', '4.2.3'),
  php('segment-php-3.8.2', 'analytics-php', '3.8.2', 'LibCurl'),
  php('segment-php-3.8.2-socket', 'analytics-php', '3.8.2', 'Socket'),
  php('rudder-php-2.2.0', 'rudder-analytics-php', '2.2.0', 'LibCurl'),
  php('rudder-php-2.2.0-socket', 'rudder-analytics-php', '2.2.0', 'Socket'),
  ruby('segment-ruby-2.5.0', 'analytics-ruby', '2.5.0', '/v1/import'),
  ruby('segment-ruby-2.5.0-single', 'analytics-ruby', '2.5.0', '/v1/import'),
  ruby('rudder-ruby-3.2.1', 'rudderanalytics-ruby', '3.2.1', '/v1/batch'),
  ruby('rudder-ruby-3.2.1-single', 'rudderanalytics-ruby', '3.2.1', '/v1/batch'),
  segmentBrowser(
    'segment-analytics-next-1.84.3',
    { options: {} },
    ['i', 't', 'g', 'p', 's', 'a'].map((path) => `/v1/${path}`),
  ),
  segmentBrowser('segment-analytics-next-1.84.3-batching', { options: batching(4, 500) }, ['/v1/b']),
  segmentBrowser('segment-analytics-next-1.84.3-page-left', { options: batching(100, 60_000), left: true }, ['/v1/b']),
  rudderBrowser(
    'rudder-analytics-js-3.34.1',
    { options: {} },
    ['identify', 'track', 'group', 'page', 'alias'].map((path) => `/v1/${path}`),
  ),
  rudderBrowser(
    'rudder-analytics-js-3.34.1-batching',
    { options: { queueOptions: { batch: { enabled: true, maxItems: 4, flushInterval: 500 } } } },
    ['/v1/batch'],
  ),
  rudderBrowser('rudder-analytics-js-3.34.1-page-left', { options: { useBeacon: true }, left: true }, [
    '/beacon/v1/batch',
  ]),
];

/** Returns the clients that do not run on one of the platforms. */
export function exceptOn<Client extends { readonly runsIn: { readonly platform: string } }>(
  platforms: readonly string[],
  clients: readonly Client[],
): readonly Client[] {
  return clients.filter(({ runsIn }) => !platforms.includes(runsIn.platform));
}

/**
 * Returns the last of each family with its usual options: of the names that differ in their version alone, and end with it. The
 * versions are in their order.
 */
export function newestOf<Client extends { readonly name: string }>(clients: readonly Client[]): readonly Client[] {
  const version = /-\d+\.\d+\.\d+$/;
  const usual = clients.filter(({ name }) => version.test(name));
  const newest = Map.groupBy(usual, ({ name }) => name.replace(version, ''));
  return [...newest.values()].flatMap((family) => family.slice(-1));
}
