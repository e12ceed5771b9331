import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Browser, chromium } from 'playwright-core';
import { findOnPath } from '../find-on-path.ts';

const run = promisify(execFile);

/** Chromium without windows. That with them takes several times the CPU time to open a page. */
const SHELL = 'chromium-headless-shell';

/** The commands that install it on Debian. */
const COMMANDS = [
  ['apt-get', 'update'],
  ['apt-get', 'install', '-y', '--no-install-recommends', SHELL],
] as const;

/**
 * Returns the path of Chromium's headless shell. Installs Debian's package when it is missing and this process may do that;
 * otherwise a Chromium with windows does, too.
 *
 * @throws {Error} with the commands that install it
 */
export async function findChromium(): Promise<string> {
  const path = (await findOnPath(SHELL)) ?? (await installShell()) ?? (await findOnPath('chromium'));
  if (path) return path;
  const commands = COMMANDS.map((command) => `sudo ${command.join(' ')}`).join(' && ');
  throw new Error(`Chromium is needed on the PATH. Install it, on Debian with: ${commands}`);
}

/** So long that it only ends a wait for something that never happens, also on a busy machine; Playwright's own is 30 seconds. */
const WAIT_MS_MAX = 120_000;

/**
 * Starts Chromium. What is done in its pages waits for as long as a busy machine may need.
 *
 * @param hostRules where it finds hosts: `MAP app.localhost:80 127.0.0.1:8080`
 * @throws {Error} as {@link findChromium} does
 */
export async function launchChromium(hostRules?: string): Promise<Browser> {
  const rules = hostRules === undefined ? [] : [`--host-resolver-rules=${hostRules}`];
  const browser = await chromium.launch({
    ...{ executablePath: await findChromium(), args: ['--no-sandbox', ...rules] },
    // It ends when its pipe to this process is closed. With a handler, a worker of tests would outlive the signal that ends it.
    ...{ handleSIGTERM: false, handleSIGHUP: false },
  });
  browser.on('context', (context) => context.setDefaultTimeout(WAIT_MS_MAX));
  return browser;
}

async function installShell(): Promise<string | undefined> {
  if (process.getuid?.() !== 0 || !(await findOnPath('apt-get'))) return undefined;
  for (const [program, ...args] of COMMANDS) {
    console.error(`Installing Debian's package ${SHELL}: ${program} ${args.join(' ')}`);
    try {
      await run(program, args, { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }, maxBuffer: 2 ** 26 });
    } catch (error) {
      console.error((error as Error).message);
      return undefined;
    }
  }
  return await findOnPath(SHELL);
}
