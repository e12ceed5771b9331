// A worker that is ready when it is told so, and says on request what is missing. worker.test.ts starts it.
import { readyTogether } from '../workers/worker.ts';

let own: readonly string[] = ['Kafka cannot be reached'];
const readiness = readyTogether(async () => own);
process.on('message', (message) => {
  if (message === 'become ready') own = [];
  if (message === 'what is missing?') void readiness().then((missing) => process.send?.({ missing }));
});
process.on('disconnect', () => process.exit());
