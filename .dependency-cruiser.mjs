// Which file may import which, checked by `npm run check`. Imports of types count as well.
const TESTS = '\\.test\\.ts$|/testing/';

/** The rooms of query-api, from the lowest floor to the highest, each with the rooms below that it may import. */
const QUERY_ROOMS = {
  http: [],
  store: ['http'],
  records: ['http', 'store'],
  reports: ['http', 'store', 'records'],
  stream: ['http', 'store', 'records'],
  sql: ['http', 'store'],
  webhooks: ['http', 'store', 'records', 'stream'],
  manage: ['http', 'store', 'records', 'reports', 'sql'],
  alerts: ['http', 'store', 'records', 'reports', 'stream', 'webhooks', 'manage'],
};

/** The rooms of the console from the lowest to the highest, each with the other ones that it may import. */
const CONSOLE_ROOMS = {
  base: [],
  parts: ['base'],
  filters: ['base', 'parts'],
  charts: ['base', 'parts'],
  events: ['base', 'parts', 'filters'],
  explore: ['base', 'parts', 'filters', 'charts'],
  operate: ['base', 'parts', 'filters', 'charts'],
  entities: ['base', 'parts', 'filters', 'charts', 'events'],
  segments: ['base', 'parts', 'filters'],
  sql: ['base', 'parts', 'charts', 'explore'],
  views: ['base', 'parts', 'filters', 'explore', 'sql'],
  pages: ['base', 'parts', 'charts', 'filters', 'events', 'operate', 'views'],
  search: ['base', 'parts', 'filters', 'explore'],
  shell: ['base', 'parts', 'events', 'explore', 'operate', 'entities', 'segments', 'sql', 'views', 'pages', 'search'],
};

/** The rooms of packages/shared, of the commands: as above. */
const SHARED_ROOMS = {
  text: [],
  rows: [],
  base: [],
  tls: ['text', 'base'],
  tracing: ['base'],
  service: ['base', 'tracing'],
  config: ['text', 'tls', 'service'],
  servers: ['text', 'config'],
  keys: ['base', 'service', 'config'],
  kafka: ['base', 'tls', 'service', 'config'],
  clickhouse: ['rows', 'base', 'tls', 'tracing', 'config'],
  http: ['text', 'base', 'tls', 'tracing', 'service', 'config', 'keys'],
};

const CLI_ROOMS = {
  command: [],
  transfer: ['command'],
  servers: ['command'],
  import: ['command', 'transfer'],
  export: ['command', 'transfer'],
  keys: ['command'],
  backup: ['command', 'servers'],
  'dead-letters': ['command', 'servers'],
  migrations: ['command', 'servers'],
  retention: ['command', 'servers'],
  'sql-account': ['command', 'servers'],
  properties: ['command', 'transfer'],
  writer: ['command', 'servers'],
  doctor: ['command', 'servers'],
  audit: ['command', 'servers'],
};

/**
 * The houses, each with its rooms from the lowest floor to the highest, and which of the others a room may import.
 *
 * `files` are the files beside the rooms that every room may import, as a pattern; `faces` says that a room is imported by
 * its face alone, the file of the same name.
 */
const HOUSES = {
  'packages/shared/src': { rooms: SHARED_ROOMS },
  'packages/storage/src': { rooms: { protocol: [], clickhouse: ['protocol'], kafka: ['protocol'] } },
  'packages/servers/src': { rooms: { state: [], copy: ['state'], compare: ['state'] } },
  'packages/submissions/src': { rooms: { reading: [], rows: ['reading'], calls: ['reading', 'rows'] } },
  'packages/cli/src': { rooms: CLI_ROOMS },
  'packages/console/src': { rooms: CONSOLE_ROOMS, faces: true },
  'services/ingest-api/src': {
    rooms: { http: [], kafka: [], routes: ['http', 'kafka'], workers: [] },
    files: '(config|metrics)\\.ts$',
  },
  'services/trench-api/src': {
    rooms: {
      http: [],
      upstream: ['http'],
      events: ['http', 'upstream'],
      queries: ['http', 'upstream'],
      webhooks: ['http', 'upstream'],
      workspaces: ['upstream'],
    },
    files: 'config\\.ts$',
  },
  'services/writer/src': { rooms: { batch: [], group: ['batch'], erasure: [] }, files: '(config|metrics)\\.ts$' },
  'services/query-api/src': {
    rooms: QUERY_ROOMS,
    files: '(config|metrics)\\.ts$',
    faces: true,
  },
};

/** Returns the rules of a house: who may import whom, and that each folder is a room. */
function rulesOf([house, { rooms, files, faces = false }]) {
  const owner = house.split('/')[1];
  const testing = house === 'packages/console/src' ? [] : [TESTS];
  const ofRooms = Object.entries(rooms).map(([room, others]) => {
    const allowed = [`(${[room, ...others].join('|')})/`, files].filter((pattern) => pattern !== undefined);
    return {
      name: `${owner}-${room}`,
      comment: `${room}/ imports of ${house} only what .dependency-cruiser.mjs says of it.`,
      from: { path: `^${house}/${room}/`, pathNot: testing },
      to: { path: `^${house}/`, pathNot: `^${house}/(${allowed.join('|')})` },
    };
  });
  const everyFolder = {
    name: `${owner}-rooms`,
    comment: `Every folder of ${house} is a room with a rule of its own.`,
    from: {
      path: `^${house}/[^/]+/`,
      pathNot: [`^${house}/(${Object.keys(rooms).join('|')})/`, ...testing],
    },
    to: { path: '' },
  };
  const onlyFaces = {
    name: `${owner}-faces`,
    comment: `A room of ${house} is imported by its face, the file of the same name.`,
    from: { path: `^${house}/([^/]+)/`, pathNot: testing },
    to: { path: `^${house}/[^/]+/`, pathNot: [`^${house}/$1/`, `^${house}/([^/]+)/\\1\\.ts$`] },
  };
  const onlyFacesBeside = {
    ...onlyFaces,
    name: `${owner}-faces-beside`,
    from: { path: `^${house}/[^/]+$`, pathNot: testing },
    to: { path: `^${house}/[^/]+/`, pathNot: `^${house}/([^/]+)/\\1\\.ts$` },
  };
  return faces ? [...ofRooms, everyFolder, onlyFaces, onlyFacesBeside] : [...ofRooms, everyFolder];
}

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
    ...Object.entries(HOUSES).flatMap(rulesOf),
    {
      name: 'house-without-files',
      comment: 'A file of the console or of packages/shared is in one of the rooms.',
      from: { path: '^packages/(console|shared)/src/[^/]+$' },
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
