/**
 * The primary process tells a worker to stop. By a signal it would be the second one wherever a signal goes to all
 * processes of the service, and a second signal ends a process at once.
 */
export interface StopMessage {
  readonly type: 'stop';
}

/** Calls `stop` when the primary process tells this worker to stop. */
export function stopWithPrimary(stop: (reason: string) => void): void {
  process.on('message', (message: StopMessage) => {
    if (message?.type === 'stop') stop('the primary process stops');
  });
}
