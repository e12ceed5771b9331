import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { glob, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findOnPath } from './find-on-path.ts';

const run = promisify(execFile);

/** The paths of Prometheus' server and of its tool for rules. */
export interface PrometheusPrograms {
  readonly prometheus: string;
  readonly promtool: string;
}

const CACHE = join(import.meta.dirname, '..', '..', '.cache');
const UNPACKED = join(CACHE, 'prometheus');
const IN_CACHE: PrometheusPrograms = {
  prometheus: join(UNPACKED, 'usr', 'bin', 'prometheus'),
  promtool: join(UNPACKED, 'usr', 'bin', 'promtool'),
};

const REMEDY = 'Prometheus is needed. Install its programs prometheus and promtool on the PATH.';

/**
 * Returns Prometheus' programs: those on the PATH, otherwise those of Debian's package `prometheus`, which it downloads
 * (19 MB, once) and unpacks into `.cache/prometheus`. Nothing is installed, and no right of root is needed. Several
 * processes may do this at the same time: the folder appears at once.
 *
 * @throws {Error} with what to install
 */
export async function findPrometheus(): Promise<PrometheusPrograms> {
  const [prometheus, promtool] = await Promise.all([findOnPath('prometheus'), findOnPath('promtool')]);
  if (prometheus && promtool) return { prometheus, promtool };
  if (!existsSync(UNPACKED)) {
    await unpackPackage().catch((cause) => {
      throw new Error(`${REMEDY} Debian's package could not be downloaded and unpacked.`, { cause });
    });
  }
  return IN_CACHE;
}

async function unpackPackage(): Promise<void> {
  console.error("Downloading Debian's package prometheus (19 MB, once)");
  await mkdir(CACHE, { recursive: true });
  const folder = await mkdtemp(join(CACHE, 'prometheus-fetch-'));
  try {
    await download(folder);
    const [archive = ''] = await Array.fromAsync(glob('prometheus_*.deb', { cwd: folder }));
    const unpacked = join(folder, 'unpacked');
    await run('dpkg-deb', ['--extract', join(folder, archive), unpacked]);
    // A shared library that is missing shows here.
    for (const program of ['prometheus', 'promtool']) await run(join(unpacked, 'usr', 'bin', program), ['--version']);
    await rename(unpacked, UNPACKED).catch((error) => {
      // Another process has unpacked it meanwhile.
      if (!existsSync(UNPACKED)) throw error;
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Downloads the package from the sources that the machine has configured; apt checks signatures and checksums. The
 * machine's lists of packages may be missing or too old: then it downloads lists into the folder.
 */
async function download(folder: string): Promise<void> {
  // The user of apt's sandbox may not write into the folder.
  const sandbox = ['-o', 'APT::Sandbox::User=root'];
  const fetchWith = async (options: readonly string[]) =>
    await run('apt-get', [...sandbox, ...options, 'download', 'prometheus'], { cwd: folder });
  try {
    await fetchWith([]);
  } catch {
    const own = ['-o', `Dir::State::Lists=${join(folder, 'lists')}`, '-o', `Dir::Cache=${join(folder, 'apt')}`];
    await mkdir(join(folder, 'lists', 'partial'), { recursive: true });
    await mkdir(join(folder, 'apt', 'archives', 'partial'), { recursive: true });
    await run('apt-get', [...sandbox, ...own, 'update']);
    await fetchWith(own);
  }
}
