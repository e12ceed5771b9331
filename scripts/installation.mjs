// Installs the dependencies of the lockfile with the pnpm of package.json. Needs only Node.js 20 and npm.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const SHOWN_EVERY_MS = 200;

/** What keeps the dependencies from being installed; the message is for the person who started the command. */
export class InstallationError extends Error {}

/**
 * Installs, unless the last complete installation was made from the same lockfile and manifests. Shows one line with
 * its progress; the output of the package manager is shown only when it fails.
 *
 * @param {string} root the folder of the repository
 * @returns {Promise<string>} the path of the installed Node.js
 * @throws {InstallationError}
 */
export async function ensureInstalled(root) {
  const stampFile = join(root, 'node_modules', '.sluice-installed');
  const node = join(root, 'node_modules', '.bin', 'node');
  const wanted = hashOfManifests(root);
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === wanted && existsSync(node)) return node;
  rmSync(stampFile, { force: true });
  const { pnpm } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).engines;
  await install(root, `pnpm@${pnpm}`);
  if (!existsSync(node)) {
    throw new InstallationError(`There is no Node.js package for ${process.platform} on ${process.arch}.`);
  }
  writeFileSync(stampFile, wanted);
  return node;
}

/** @param {string} root */
function hashOfManifests(root) {
  const hash = createHash('sha256');
  for (const file of manifests(root)) {
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(root, file)))
      .update('\0');
  }
  return `${hash.digest('hex')}\n`;
}

/** @param {string} root */
function manifests(root) {
  /** @param {string} folder */
  const namesIn = (folder) => (existsSync(join(root, folder)) ? readdirSync(join(root, folder)).sort() : []);
  const files = [
    ...['package.json', 'pnpm-lock.yaml', 'pnpm-workspace.yaml', 'tests/package.json'],
    ...['packages', 'services'].flatMap((folder) => namesIn(folder).map((name) => `${folder}/${name}/package.json`)),
    ...namesIn('patches').map((name) => `patches/${name}`),
  ];
  return files.filter((file) => existsSync(join(root, file)));
}

/**
 * @param {string} root
 * @param {string} pnpmPackage with its version
 */
async function install(root, pnpmPackage) {
  const args = ['exec', '--yes', `--package=${pnpmPackage}`, '--', 'pnpm', 'install', '--frozen-lockfile'];
  const options = ['--reporter=append-only', '--config.confirm-modules-purge=false'];
  const child = spawn('npm', [...args, ...options], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  const jars = fetchKafkaJars(root);
  /** @type {NodeJS.Signals | undefined} */
  let interruptedBy;
  const forward = (/** @type {NodeJS.Signals} */ signal) => {
    interruptedBy = signal;
    child.kill(signal);
    jars?.kill(signal);
  };
  const signals = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']);
  for (const signal of signals) process.on(signal, forward);

  const progress = showProgress(process.stderr);
  /** @type {string[]} */
  const output = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      output.push(line);
      progress.update(line);
    });
  }
  const [{ error, code, signal }] = await Promise.all([ended(child), jars && ended(jars)]);
  for (const name of signals) process.off(name, forward);
  const succeeded = code === 0 && signal === null && !error;
  progress.end(succeeded);
  if (succeeded) return;
  const endedBy = interruptedBy ?? signal;
  if (endedBy) {
    process.kill(process.pid, endedBy);
    throw new InstallationError('The installation was interrupted. Run the command again to continue it.');
  }
  if (error) throw new InstallationError(`The installation needs npm on the PATH (${error.message}).`);
  console.error(output.join('\n'));
  throw new InstallationError(whyInstallFailed(pnpmPackage));
}

/**
 * Downloads Kafka's jars into Maven's own repository while npm's packages are downloaded. What fails here is told by the
 * command that needs the jars: it asks Maven again.
 *
 * @param {string} root
 */
function fetchKafkaJars(root) {
  const pomFile = join(root, 'packages', 'local-stack', 'kafka', 'pom.xml');
  if (!existsSync(pomFile)) return undefined;
  const args = ['-q', '-B', '-f', pomFile, 'dependency:resolve', '-DincludeScope=runtime'];
  return spawn('mvn', args, { stdio: 'ignore' });
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @returns {Promise<{ error?: Error, code: number | null, signal: NodeJS.Signals | null }>}
 */
function ended(child) {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve({ error, code: null, signal: null }));
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
}

/**
 * One line that says how far an installation is: rewritten in place on a terminal, printed once elsewhere.
 *
 * @param {NodeJS.WriteStream} stream
 */
function showProgress(stream) {
  const startedAt = performance.now();
  const title = 'Installing dependencies';
  if (!stream.isTTY) {
    stream.write(`${title} (the first time takes a minute or two)\n`);
    return { update() {}, end() {} };
  }
  const state = { packages: '', download: '' };
  const show = () => {
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    const text = [`${title}: ${seconds} s`, state.packages, state.download].filter((part) => part !== '').join(', ');
    stream.write(`\r\x1b[K${text.slice(0, Math.max((stream.columns || 80) - 1, 20))}`);
  };
  show();
  const timer = setInterval(show, SHOWN_EVERY_MS);
  return {
    /** @param {string} line */
    update: (line) => void Object.assign(state, progressOf(line)),
    /** @param {boolean} succeeded */
    end(succeeded) {
      clearInterval(timer);
      const seconds = Math.round((performance.now() - startedAt) / 1000);
      stream.write(`\r\x1b[K${title}: ${succeeded ? `done in ${seconds} s` : 'failed'}\n`);
    },
  };
}

/**
 * What a line of pnpm's append-only reporter says about the progress; nothing when it is about something else.
 *
 * @param {string} line
 * @returns {{ packages?: string, download?: string }}
 */
export function progressOf(line) {
  const counts = /^Progress: resolved (\d+), reused (\d+), downloaded (\d+), added \d+/.exec(line);
  if (counts) {
    const [, resolved, reused, downloaded] = counts.map(Number);
    return { packages: `${(reused ?? 0) + (downloaded ?? 0)} of ${resolved} packages` };
  }
  const download = /^Downloading (\S+)@\S+: ([\d.]+ \S?B)\/([\d.]+ \S?B)(, done)?/.exec(line);
  if (!download) return {};
  const [, name, loaded, size, done] = download;
  return { download: done ? '' : `${name} ${loaded} of ${size}` };
}

/**
 * Asks the registry for one package's version, to tell a network that is down from anything else.
 *
 * @param {string} pnpmPackage
 */
function whyInstallFailed(pnpmPackage) {
  const look = ['view', pnpmPackage, 'version', '--prefer-online', '--fetch-retries=0', '--fetch-timeout=10000'];
  const reached = spawnSync('npm', look, { stdio: 'ignore' }).status === 0;
  if (reached) return 'The installation failed; the output above says why. Run the command again to continue it.';
  return 'The package registry cannot be reached: check the network, the proxy and the registry of your npm settings, then run the command again.';
}
