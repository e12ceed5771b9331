// Runs scripts/<command>.ts on the Node.js of the lockfile, after installing what is missing. Needs only Node.js 20.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const stampFile = join(root, 'node_modules', '.sluice-installed');
const node = join(root, 'node_modules', '.bin', 'node');

const [command = '', ...args] = process.argv.slice(2);
const script = join(root, 'scripts', `${command}.ts`);
if (!/^[a-z][a-z-]*$/.test(command) || !existsSync(script)) fail(`There is no command "${command}".`);
ensureInstalled();
runScript();

/** Installs unless the last complete install was made from the same lockfile and manifests. */
function ensureInstalled() {
  const wanted = hashOfManifests();
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === wanted && existsSync(node)) return;
  rmSync(stampFile, { force: true });
  const { pnpm } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).engines;
  const pnpmPackage = `pnpm@${pnpm}`;
  console.error('Installing what is missing (the first time takes a minute or two)');
  const install = ['exec', '--yes', `--package=${pnpmPackage}`, '--', 'pnpm', 'install', '--frozen-lockfile'];
  const result = spawnSync('npm', [...install, '--config.confirm-modules-purge=false'], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (result.signal) process.kill(process.pid, result.signal);
  if (result.error) fail(`The installation needs npm on the PATH (${result.error.message}).`);
  if (result.status !== 0) fail(whyInstallFailed(pnpmPackage));
  if (!existsSync(node)) fail(`There is no Node.js package for ${process.platform} on ${process.arch}.`);
  writeFileSync(stampFile, wanted);
}

function hashOfManifests() {
  const hash = createHash('sha256');
  for (const file of manifests())
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(root, file)))
      .update('\0');
  return `${hash.digest('hex')}\n`;
}

function manifests() {
  const inFolders = ['services', 'packages'].flatMap((folder) =>
    readdirSync(join(root, folder)).map((name) => `${folder}/${name}/package.json`),
  );
  const patches = existsSync(join(root, 'patches')) ? readdirSync(join(root, 'patches')) : [];
  const files = [
    ...['package.json', 'pnpm-lock.yaml', 'pnpm-workspace.yaml', 'tests/package.json'],
    ...inFolders.sort(),
    ...patches.sort().map((name) => `patches/${name}`),
  ];
  return files.filter((file) => existsSync(join(root, file)));
}

/**
 * Asks the registry for one package's version, to tell a network that is down from anything else.
 *
 * @param {string} pnpmPackage
 */
function whyInstallFailed(pnpmPackage) {
  const look = ['view', pnpmPackage, 'version', '--prefer-online', '--fetch-retries=0', '--fetch-timeout=10000'];
  const reached = spawnSync('npm', look, { cwd: root, stdio: 'ignore' }).status === 0;
  if (reached) return 'The installation failed; what went wrong stands above. Run the command again to continue it.';
  return 'The package registry cannot be reached: check the network, the proxy and the registry of your npm settings, then run the command again.';
}

/**
 * Stands in for the script: the same streams and exit code, signals passed on. When this process is killed, the script
 * sees the channel close.
 */
function runScript() {
  const child = spawn(node, ['--disable-warning=ExperimentalWarning', script, ...args], {
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
