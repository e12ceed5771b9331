import type { Alert, Condition } from './alert.ts';
import type { AlertState } from './alert-state.ts';
import type { TimeSpan } from './alert-window.ts';
import { numberText, plainInSlack, slackBody, timeText } from './message-text.ts';

/** What a message is about. */
export interface ChangedAlert {
  readonly id: string;
  /** The id of the message. */
  readonly message: string;
  readonly alert: Alert;
  readonly viewName: string;
  readonly state: AlertState;
  readonly window: TimeSpan;
}

/** Returns the body of the message that an alert fires, or no longer does. */
export function alertBody({ id, message, alert, viewName, state, window }: ChangedAlert): string {
  const { value, before, firing } = state;
  const { condition, format, name } = alert;
  if (format === 'slack') {
    const from = `from ${timeText(window.startMs)} to ${timeText(window.endMs)}`;
    const number = `${plainInSlack(viewName)}: ${numberText(value)} ${from}`;
    return JSON.stringify(
      slackBody(
        `${firing ? 'Firing' : 'Resolved'}: ${plainInSlack(name)}. ${number} (${limitText(condition, before)}).`,
      ),
    );
  }
  return JSON.stringify({
    type: 'alert',
    timestamp: new Date(window.endMs).toISOString(),
    data: {
      id: message,
      state: firing ? 'firing' : 'resolved',
      alert: { id, name },
      view: { id: alert.view, name: viewName },
      ...{ value, before, condition, window: alert.window, for: alert.for },
      ...{ startDate: new Date(window.startMs).toISOString(), endDate: new Date(window.endMs).toISOString() },
    },
  });
}

function limitText(condition: Condition, before: number | null): string {
  if (condition.is === 'absent') return 'fires while it is absent';
  if (condition.is === 'changes')
    return `before: ${numberText(before)}; fires at ${numberText(condition.percent)} % of change`;
  return `fires ${condition.is} ${numberText(condition.threshold)}`;
}
