// Runs scripts/<command>.ts on the Node.js of the lockfile, after installing what is missing. Needs only Node.js 20.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { ensureInstalled, InstallationError } from './installation.mjs';

const root = join(import.meta.dirname, '..');
const [command = '', ...args] = process.argv.slice(2);
const script = join(root, 'scripts', `${command}.ts`);

// What Node.js has compiled, and stripped of types, is kept for the next run: a start takes two thirds of the CPU time. For the
// commands of users only, since others run copies of the sources, each of which would stay. Where the folder cannot be
// written, Node.js goes without.
const compiled = ['start', 'sluice'].includes(command) ? { NODE_COMPILE_CACHE: join(root, '.cache', 'compile') } : {};

if (!/^[a-z][a-z-]*$/.test(command) || !existsSync(script)) fail(`There is no command "${command}".`);
try {
  runScript(await ensureInstalled(root));
} catch (error) {
  if (!(error instanceof InstallationError)) throw error;
  fail(error.message);
}

/**
 * Stands in for the script: the same streams and exit code, and it passes signals on. When this process is killed, the
 * script sees the channel close.
 *
 * @param {string} node
 */
function runScript(node) {
  const child = spawn(node, ['--disable-warning=ExperimentalWarning', script, ...args], {
    env: { ...compiled, ...process.env },
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']))
    process.on(signal, () => child.kill(signal));
  child.on('error', (error) => fail(`${node} cannot be run (${error.message}). Remove node_modules and try again.`));
  child.on('exit', (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : (code ?? 1)));
}

/**
 * @param {string} sentence
 * @returns {never}
 */
function fail(sentence) {
  console.error(sentence);
  process.exit(1);
}
