/** Why something cannot be published to a local network, in one line. */
export class PublishingError extends Error {
  override readonly name = 'PublishingError'
}
