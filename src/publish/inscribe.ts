import { Hash } from '@bsv/sdk'
import mime from 'mime'
import { concatBytes, equalBytes, toHex } from '../../backend/src/protocol/bytes.js'
import { GeneralError } from '../../backend/src/protocol/coded-error.js'
import { encodeEnvelope, readInscription } from '../../backend/src/protocol/inscription.js'
import { isMediaType, UNTYPED } from '../../backend/src/protocol/media-type.js'

export type PublishErrorCode =
  | 'BAD_LOCK'
  | 'BAD_CONTENT_TYPE'
  | 'BAD_CHUNK_SIZE'
  | 'BAD_FIRST_OUTPUT'
  | 'BAD_NAME'
  | 'NESTING_TOO_DEEP'
  | 'DIRECTORY_TOO_LARGE'
  | 'NO_SUCH_STATE'

/** Content that cannot be laid out so that readers find it. */
export class PublishError extends GeneralError<PublishErrorCode> {
  override readonly name = 'PublishError'
}

/**
 * The content type of a file by its extension, whatever its bytes: `application/octet-stream` for unknown ones. Text is
 * declared to be UTF-8, because browsers would guess otherwise.
 */
export function contentTypeOf(name: string): string {
  // Without the slash, the library would take a file named `html` for an extension.
  const type = mime.getType(`/${name}`) ?? UNTYPED
  return type.startsWith('text/') ? `${type}; charset=utf-8` : type
}

/** An output for a transaction that the caller makes, funds and signs. */
export interface PublishOutput {
  /** An ordinal is in an output of exactly 1 satoshi (BRC-159). */
  satoshis: 1
  /** The owner's lock, and the envelope after it (`docs/spec/protocol.md`, Scripts). */
  lockingScript: Uint8Array
  /** For the wallet's own records; not on the chain. */
  tags: string[]
}

export interface InscriptionContent {
  lock: Uint8Array
  contentType: string
  body: Uint8Array
  tags: string[]
}

/**
 * Lays out one inscription. Check the lock with {@link checkLock} first.
 *
 * @throws PublishError (`BAD_CONTENT_TYPE`) if readers would not accept the content type.
 */
export function inscribe({ lock, contentType, body, tags }: InscriptionContent): PublishOutput {
  if (!isMediaType(contentType))
    throw new PublishError('BAD_CONTENT_TYPE', `not a content type: ${JSON.stringify(contentType)}`)
  return { satoshis: 1, lockingScript: concatBytes(lock, encodeEnvelope({ contentType, body })), tags }
}

/**
 * Checks that readers find an inscription after a lock. They do not if the lock ends within a push, has an envelope of its own
 * (the first one counts) or an OP_RETURN (no envelope after it counts).
 *
 * @throws PublishError (`BAD_LOCK`).
 */
export function checkLock(lock: Uint8Array): void {
  const probe = { contentType: 'text/plain', body: Uint8Array.of(1, 2, 3) }
  const { content } = readInscription(concatBytes(lock, encodeEnvelope(probe)))
  const isRead =
    content?.source === 'envelope' &&
    content.contentType === probe.contentType &&
    equalBytes(content.body, probe.body)
  if (!isRead) throw new PublishError('BAD_LOCK', 'an inscription after this lock would not be found')
}

/** `sha256:` and the hash of some content, as hex. */
export function contentTag(content: Uint8Array): string {
  const { SHA256 } = Hash
  return hashTag(Uint8Array.from(new SHA256().update(content).digest()))
}

export function hashTag(sha256: Uint8Array): string {
  return `sha256:${toHex(sha256)}`
}
