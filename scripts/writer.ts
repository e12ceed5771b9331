// npm run writer: which partitions the writers store, of the system that npm start runs or of the one that KAFKA_BROKERS
// and CLICKHOUSE_URL name. `npm run writer -- --help` tells more.
import { useLocalSystem } from './local-system.ts';

await useLocalSystem();
await import('../services/writer/src/operator/main.ts');
