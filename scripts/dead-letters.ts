// npm run dead-letters: what the writer could not store, of the system that npm start runs or of the one that
// KAFKA_BROKERS and CLICKHOUSE_URL name. `npm run dead-letters -- --help` tells more.
import { useLocalSystem } from './local-system.ts';

await useLocalSystem();
await import('../services/writer/src/dead-letters/main.ts');
