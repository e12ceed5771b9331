// npm run dead-letters: lists, shows and replays dead letters, of the system of npm start or of the one that KAFKA_BROKERS
// and CLICKHOUSE_URL name. `npm run dead-letters -- --help` shows its usage.
import { useLocalSystem } from './local-system.ts';

await useLocalSystem();
await import('../services/writer/src/commands/dead-letters/main.ts');
