// A process of its own, because testcontainers looks for a runtime once: starts a stack and prints what came of it as
// JSON. Usage: node container-run.ts <kind, or nothing> <brokers>.
import { parseTestStackKind, startTestStack } from '../test-stack.ts';

const [kind, brokers] = process.argv.slice(2);
const lines: string[] = [];
const outcome = await startTestStack({
  kind: parseTestStackKind(kind),
  kafkaBrokers: brokers === '3' ? 3 : 1,
  onProgress: (line) => lines.push(line),
}).then(
  async (stack) => {
    await stack.stop();
    return { kind: stack.kind };
  },
  (error: Error) => ({ error: error.message }),
);
console.log(JSON.stringify({ ...outcome, lines }));
