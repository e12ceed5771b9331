/** What makes a call one that cannot be taken. Its message is a sentence. */
export class InvalidCall extends Error {
  override readonly name = 'InvalidCall';
}
