import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '..', '..');

/** Folders and files of .dockerignore that lie inside of what the Dockerfile copies. */
const IGNORED = /(^|\/)(node_modules|testing)$|\.test\.ts$|^packages\/cli\/src\/(import|export|transfer)$/;

/**
 * Makes what an image of the Dockerfile has in /sluice, without a container runtime: runs the steps of its stage
 * "dependencies" in a folder, and copies what the last stage copies from the repository. The console is not built.
 *
 * @param folder is empty
 */
export async function makeImageFiles(service: string, folder: string): Promise<void> {
  const dockerfile = (await readFile(join(ROOT, 'Dockerfile'), 'utf8')).replaceAll(/\\\n\s*/g, '');
  const stages = dockerfile.split(/^FROM /m);
  const dependencies = stages.find((stage) => / AS dependencies$/m.test(stage)) ?? '';
  await takeSteps(dependencies, service, folder);
  await takeSteps((stages.at(-1) ?? '').replaceAll(/^RUN .*$/gm, ''), service, folder);
}

async function takeSteps(stage: string, service: string, folder: string): Promise<void> {
  for (const [, name, text = ''] of stage.matchAll(/^(COPY|RUN) (?!--from)(.*)$/gm)) {
    const step = text.replaceAll('$SERVICE', service);
    if (name === 'COPY') await copy(step.split(' '), folder);
    else await runStep(text.replaceAll(/--mount=\S+ ?/g, ''), service, folder);
  }
}

async function copy(parts: readonly string[], folder: string): Promise<void> {
  const target = parts.at(-1) ?? '';
  for (const source of parts.slice(0, -1)) {
    const to = join(folder, target, target.endsWith('/') ? source.replace(/^.*\//, '') : '');
    await mkdir(dirname(to), { recursive: true });
    const filter = (path: string) => !IGNORED.test(relative(ROOT, path));
    await cp(join(ROOT, source), to, { recursive: true, filter });
  }
}

/** Runs the commands of a step. Its pnpm is installed for the call only. */
async function runStep(commands: string, service: string, folder: string): Promise<void> {
  const [, pnpm = ''] = /npm install --global (pnpm@\S+)/.exec(commands) ?? [];
  const script = join(folder, 'step.sh');
  await writeFile(
    script,
    `set -e
pnpm() { npm exec --yes --package=${pnpm || 'pnpm'} -- pnpm "$@"; }
${commands.replace(/npm install --global \S+ && /, '')}
`,
  );
  const env = { ...process.env, SERVICE: service };
  await promisify(execFile)('sh', [script], { cwd: folder, env, maxBuffer: 16 * 1_024 * 1_024 });
  await promisify(execFile)('rm', [script]);
}
