/** Returns a signal that aborts at the first signal to the process; a second one ends the process at once. */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  let at = 0;
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      // One Ctrl-C arrives twice: from the terminal and from npm.
      if (controller.signal.aborted && performance.now() - at > 500) process.exit(130);
      at ||= performance.now();
      controller.abort();
    });
  }
  return controller.signal;
}
