// npm run writer: shows, halts and resumes the partitions that the writers store, in the system of npm start or in the
// one that KAFKA_BROKERS and CLICKHOUSE_URL name. `npm run writer -- --help` shows its usage.
import { useLocalSystem } from './local-system.ts';

await useLocalSystem();
await import('../services/writer/src/commands/writer/main.ts');
