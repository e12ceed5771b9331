// Which file may import which, checked by `npm run check`. Imports of types count as well.
const TESTS = '\\.test\\.ts$|/testing/';

/** The folders of packages/storage, of packages/servers and of the writer, each with the other ones of its parent that it may import. */
const FOLDERS = {
  'packages/storage/src': { protocol: [], clickhouse: ['protocol'], kafka: ['protocol'] },
  'packages/servers/src': { copy: [], compare: [] },
  'services/writer/src': { batch: [], group: ['batch'], erasure: [] },
};

/** The rooms of query-api, from the lowest floor to the highest, each with the rooms below that it may import. */
const QUERY_ROOMS = {
  http: [],
  store: ['http'],
  records: ['http', 'store'],
  reports: ['http', 'store', 'records'],
  stream: ['http', 'store', 'records'],
  sql: ['http', 'store'],
  webhooks: ['http', 'store', 'records', 'stream'],
  manage: ['http', 'store', 'records', 'reports'],
};

/** The rooms of the console from the lowest to the highest, each with the other ones that it may import. */
const CONSOLE_ROOMS = {
  base: [],
  parts: ['base'],
  filters: ['base', 'parts'],
  charts: ['base', 'parts'],
  events: ['base', 'parts', 'filters'],
  explore: ['base', 'parts', 'filters', 'charts'],
  operate: ['base', 'parts', 'charts'],
  entities: ['base', 'parts', 'filters', 'charts', 'events'],
  views: ['base', 'parts', 'explore'],
  pages: ['base', 'parts', 'filters', 'charts', 'events', 'operate'],
  shell: ['base', 'parts', 'events', 'explore', 'operate', 'entities', 'views', 'pages'],
};

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    {
      name: 'no-circles',
      comment: 'Files that import one another can only be read together.',
      from: { pathNot: '^tests/simulation/' },
      to: { circular: true },
    },
    {
      name: 'no-circles-in-simulation',
      comment: 'A simulated world and its parts know the types of one another.',
      from: { path: '^tests/simulation/' },
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'services-apart',
      comment: 'A service never imports a service: each is deployed and scaled alone.',
      from: { path: '^services/([^/]+)/' },
      to: { path: '^services/', pathNot: '^services/$1/' },
    },
    {
      name: 'packages-below-services',
      comment:
        "A package is what services are built from. Only the build of our client reads query-api's own description.",
      from: { path: '^packages/', pathNot: '^packages/client/scripts/query-schema\\.ts$' },
      to: { path: '^services/' },
    },
    {
      name: 'local-engines',
      comment: 'Only tests, benchmarks and the scripts of the repository run local engines.',
      from: { path: '^(services|packages)/', pathNot: `^packages/local-stack/|${TESTS}` },
      to: { path: '^packages/local-stack/' },
    },
    {
      name: 'unit-tests-without-engines',
      comment: 'A test that needs an engine is named X.service.test.ts, or is in tests/.',
      from: { path: '\\.test\\.ts$', pathNot: '^tests/(?!kit/)|\\.(service|slow|night)\\.test\\.ts$' },
      to: {
        path: '/testing/(test-database|clients|store|query-service|ingest)\\.ts$|^tests/kit/(engines|pipeline)\\.ts$|^packages/local-stack/src/(kafka|clickhouse|test-stack)\\.ts$',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'kafka-client',
      comment:
        'kafkajs is imported where clients and topics are created, and where messages are produced and consumed.',
      from: {
        path: '^(services|packages)/',
        pathNot: `^packages/(local-stack|shared/src/kafka|storage|servers|cli)/|^services/(ingest-api|writer)/|${TESTS}`,
      },
      to: { path: 'node_modules/kafkajs/' },
    },
    {
      name: 'clickhouse-client',
      comment: '@clickhouse/client is imported where clients are created, and where the writer stores and erases rows.',
      from: {
        path: '^(services|packages)/',
        pathNot: `^packages/(local-stack|(shared|storage)/src/clickhouse)/|^services/writer/src/(batch|erasure)/|${TESTS}`,
      },
      to: { path: 'node_modules/@clickhouse/client' },
    },
    {
      name: 'tracing-sdk',
      comment:
        'The SDK is loaded only where register.mjs is imported: without it nothing is traced, and nothing costs.',
      from: { pathNot: `^packages/shared/src/tracing/sdk\\.ts$|${TESTS}` },
      to: { path: 'node_modules/@opentelemetry/(sdk-node|resources)/' },
    },
    {
      name: 'tracing-switch',
      comment: 'Only who runs a service switches tracing on.',
      from: { pathNot: '^packages/shared/src/tracing/register\\.mjs$' },
      to: { path: '^packages/shared/src/tracing/(sdk\\.ts|register\\.mjs)$' },
    },
    {
      name: 'tracing-api',
      comment: 'Spans begin where requests are received and queued, and where messages and statements are sent.',
      from: {
        path: '^(services|packages)/',
        pathNot: `^packages/shared/src/(tracing|clickhouse)/|^services/ingest-api/src/kafka/|^services/writer/src/group/|^services/query-api/src/store/|${TESTS}`,
      },
      to: { path: 'node_modules/@opentelemetry/api/' },
    },
    ...Object.entries(FOLDERS).flatMap(([parent, folders]) =>
      Object.entries(folders).map(([folder, others]) => ({
        name: `${parent.split('/')[1]}-${folder}`,
        comment: `${folder}/ imports no other folder of ${parent} than it may.`,
        from: { path: `^${parent}/${folder}/`, pathNot: TESTS },
        to: { path: `^${parent}/[^/]+/`, pathNot: `^${parent}/(${[folder, ...others].join('|')})/` },
      })),
    ),
    ...Object.entries(QUERY_ROOMS).map(([room, below]) => ({
      name: `query-api-${room}`,
      comment: `${room}/ imports no room of query-api but those below it, and of the files at the root only config.ts and metrics.ts.`,
      from: { path: `^services/query-api/src/${room}/`, pathNot: TESTS },
      to: {
        path: '^services/query-api/src/',
        // A key of a link is one of the keys that a request is authenticated with.
        pathNot: `^services/query-api/src/((${[room, ...below].join('|')})/|(config|metrics)\\.ts$${room === 'http' ? '|manage/views/link-keys\\.ts$' : ''})`,
      },
    })),
    {
      name: 'query-api-rooms',
      comment: 'Every folder of query-api is a room with a rule of its own.',
      from: {
        path: '^services/query-api/src/[^/]+/',
        pathNot: `^services/query-api/src/(${Object.keys(QUERY_ROOMS).join('|')})/|${TESTS}`,
      },
      to: { path: '' },
    },
    ...Object.entries(CONSOLE_ROOMS).map(([room, others]) => ({
      name: `console-${room}`,
      comment: `${room}/ imports no other room of the console than it may.`,
      from: { path: `^packages/console/src/${room}/` },
      to: { path: '^packages/console/src/', pathNot: `^packages/console/src/(${[room, ...others].join('|')})/` },
    })),
    {
      name: 'console-faces',
      comment: 'A room of the console is imported by its face, the file of the same name.',
      from: { path: '^packages/console/src/([^/]+)/' },
      to: {
        path: '^packages/console/src/',
        pathNot: ['^packages/console/src/$1/', '^packages/console/src/([^/]+)/\\1\\.ts$'],
      },
    },
    {
      name: 'console-rooms',
      comment: 'A file of the console is in one of its rooms.',
      from: {
        path: '^packages/console/src/',
        pathNot: `^packages/console/src/(${Object.keys(CONSOLE_ROOMS).join('|')})/`,
      },
      to: { path: '' },
    },
    {
      name: 'protocol-decides',
      comment:
        'protocol/ decides and runs no code of a client. Neither do clickhouse/, batch/ and erasure/ know Kafka.',
      from: { path: '^(packages/storage|services/writer)/src/(protocol|clickhouse|batch|erasure)/', pathNot: TESTS },
      to: { path: 'node_modules/kafkajs/', dependencyTypesNot: ['type-only'] },
    },
  ].map((rule) => ({ ...rule, severity: 'error' })),
  options: {
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(packages|scripts)/[^.]*/(dist|fixtures)/' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default'] },
  },
};
