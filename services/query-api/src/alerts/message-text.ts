/** What may become formatting, a link, a name or an emoji: each is parted from what follows by a character without width. */
const SPECIAL = /[*_~`|:./@#]/g;
const WITHOUT_WIDTH = '\u2060';

/** Returns a text from outside as a part of a text for Slack, which shows it as it is (https://api.slack.com/reference/surfaces/formatting). */
export function plainInSlack(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  const escaped = line.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return escaped.replaceAll(SPECIAL, `$&${WITHOUT_WIDTH}`);
}

/** Returns the body that Slack and others take. They format nothing of it. */
export function slackBody(text: string): object {
  return { text, mrkdwn: false };
}

export function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

export function numberText(value: number | null): string {
  return value === null ? 'no number' : new Intl.NumberFormat('en', { maximumFractionDigits: 2 }).format(value);
}

/** Returns a change in percent as a text. */
export function changeText(change: number | undefined): string {
  if (change === undefined) return 'no change known';
  if (!Number.isFinite(change)) return 'from 0';
  return `${change > 0 ? '+' : ''}${numberText(change)} %`;
}
