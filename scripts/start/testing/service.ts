// A service for the supervisor's tests. /readyz answers 200 from the second request on; the environment changes that: with
// NEVER_READY it always lacks what that says.
import { createServer } from 'node:http';

const { FAIL, NEVER_READY, PORT, EXIT_ON_STDIN_END, SHOW } = process.env;
if (FAIL) process.exit(7);
if (SHOW) console.log(process.env[SHOW]);

let requests = 0;
const server = createServer((request, response) => {
  requests += 1;
  const ready = request.url === '/readyz' && requests > 1 && !NEVER_READY;
  if (ready && requests === 2) console.log('ready');
  if (NEVER_READY) console.log('asked');
  response.writeHead(ready ? 200 : 503).end(JSON.stringify({ missing: NEVER_READY ? [NEVER_READY] : [] }));
});
server.listen(Number(PORT), '127.0.0.1', () => console.log('listening'));

function stop(reason: string): void {
  console.log(`stopped by ${reason}`);
  process.exit(0);
}

process.on('SIGTERM', () => stop('SIGTERM'));
if (EXIT_ON_STDIN_END === 'true') process.stdin.on('end', () => stop('the end of its input')).resume();
