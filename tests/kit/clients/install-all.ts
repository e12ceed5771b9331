// A vitest globalSetup: installs the clients of others, and Chromium.
import { findChromium } from './chromium.ts';
import { CLIENTS } from './clients.ts';
import { installClients } from './installation.ts';
import { POSTHOG_CLIENTS } from './posthog/clients.ts';

export default async function setup(): Promise<void> {
  const environments = [...CLIENTS, ...POSTHOG_CLIENTS].flatMap(({ runsIn }) =>
    runsIn.platform === 'python' ? [runsIn.environment] : [],
  );
  await Promise.all([installClients(environments), findChromium()]);
}
