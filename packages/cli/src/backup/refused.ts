/** Why a command did nothing. The message is for the operator. */
export class Refused extends Error {
  override readonly name = 'Refused';
}
