import { Hash } from '@bsv/sdk'
import mime from 'mime'
import { concatBytes, equalBytes, toHex } from '../../backend/src/protocol/bytes.js'
import { CodedError } from '../../backend/src/protocol/coded-error.js'
import { encodeEnvelope } from '../../backend/src/protocol/envelope.js'
import { readInscription } from '../../backend/src/protocol/inscription.js'
import { isMediaType, UNTYPED } from '../../backend/src/protocol/media-type.js'

export type PublishErrorCode =
  | 'BAD_LOCK'
  | 'BAD_CONTENT_TYPE'
  | 'BAD_CHUNK_SIZE'
  | 'BAD_FIRST_OUTPUT'
  | 'BAD_NAME'
  | 'NESTING_TOO_DEEP'

/** Something that cannot be laid out so that it reads back; the message is one sentence about what it was. */
export class PublishError extends CodedError<PublishErrorCode> {
  override readonly name = 'PublishError'
}

/**
 * The content type of a file by the extension of its name, whatever its bytes are: `application/octet-stream` where
 * the extension is none that is known. Text is said to be UTF-8, because browsers would guess otherwise.
 */
export function contentTypeOf(name: string): string {
  // The library takes a bare word for an extension; behind a slash it is a name: `html` has no extension.
  const type = mime.getType(`/${name}`) ?? UNTYPED
  return type.startsWith('text/') ? `${type}; charset=utf-8` : type
}

/** An output to put into a transaction: who makes that, pays for it and signs it is the caller's affair. */
export interface PublishOutput {
  /** An ordinal lives in outputs of exactly 1 satoshi (BRC-159). */
  satoshis: 1
  /** The owner's lock, and the envelope after it (protocol.md 3). */
  lockingScript: Uint8Array
  /** For the wallet's own book-keeping; nothing of them is on the chain. */
  tags: string[]
}

/** What an output is to hold. */
export interface InscriptionContent {
  lock: Uint8Array
  contentType: string
  body: Uint8Array
  tags: string[]
}

/**
 * Lays out one inscription; the lock is taken as {@link checkLock} has left it.
 *
 * @throws PublishError (`BAD_CONTENT_TYPE`) where readers would not take the content type for what it says.
 */
export function inscribe({ lock, contentType, body, tags }: InscriptionContent): PublishOutput {
  if (!isMediaType(contentType))
    throw new PublishError('BAD_CONTENT_TYPE', `not a content type: ${JSON.stringify(contentType)}`)
  return { satoshis: 1, lockingScript: concatBytes(lock, encodeEnvelope({ contentType, body })), tags }
}

/**
 * Makes sure that what stands behind a lock is read as an inscription: it is not where the lock ends within a push, has
 * an envelope of its own (the first counts) or an OP_RETURN (no envelope counts after it).
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
  if (!isRead) throw new PublishError('BAD_LOCK', 'an inscription behind this lock would not be read')
}

/** `sha256:` and the hash of some content in hex (service.md 2.5). */
export function contentTag(content: Uint8Array): string {
  const { SHA256 } = Hash
  return hashTag(Uint8Array.from(new SHA256().update(content).digest()))
}

export function hashTag(sha256: Uint8Array): string {
  return `sha256:${toHex(sha256)}`
}
