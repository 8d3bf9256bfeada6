import { createPublicKey, verify } from 'node:crypto'
import {
  CompletedProtoWallet,
  KeyDeriver,
  type LockingScript,
  PrivateKey,
  type PublicKey,
  PushDrop,
} from '@bsv/sdk'
import { LRUCache } from 'lru-cache'
import { equalBytes, fromHex, joinBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { readPushes } from '../../../backend/src/protocol/script-walk.js'
import { firstOutputs, type TransactionView } from '../../../backend/src/protocol/transaction.js'
import type { Config } from '../config/config.js'

/** SHIP advertises a topic (BRC-88), SLAP a lookup service. */
export type AdvertisementProtocol = 'SHIP' | 'SLAP'

export interface Advertisement {
  protocol: AdvertisementProtocol
  url: string
  /** `tm_…` or `ls_…`. */
  topicOrService: string
}

/** The topics that hold the tokens of each protocol, and the lookup services that find them. */
export const ADVERTISEMENTS = {
  SHIP: { topic: 'tm_ship', service: 'ls_ship', prefix: 'tm_', protocolName: 'service host interconnect' },
  SLAP: { topic: 'tm_slap', service: 'ls_slap', prefix: 'ls_', protocolName: 'service lookup availability' },
} as const

/** The BRC-43 key ID of every token. */
const KEY_ID = '1'
/** Names of topics and lookup services (BRC-87). */
const NAME = /^(?=.{1,50}$)(?:tm_|ls_)[a-z]+(?:_[a-z]+)*$/
/** Enough for a token with a URL of 700 bytes. */
export const MAX_ADVERTISEMENT_BYTES = 1000
const MAX_KNOWN = 1000
const MAX_OUTPUTS = 32

type Verify = (message: Uint8Array, signature: Uint8Array) => boolean

/** Reads the tokens of one identity key and ignores all others. */
export class AdvertisementReader {
  private readonly isSignedByKey: Verify
  private readonly isSignedFor: Record<AdvertisementProtocol, Verify>
  private readonly beginnings: { protocol: AdvertisementProtocol; bytes: Uint8Array }[]
  /** The tokens in scripts, by their bytes: anyone can copy a token, and checking a signature takes milliseconds. */
  private readonly known = new LRUCache<string, { token: Advertisement | undefined }>({ max: MAX_KNOWN })

  constructor(readonly identityKey: PublicKey) {
    const anyone = new KeyDeriver('anyone')
    const keyOf = (protocol: AdvertisementProtocol): PublicKey =>
      anyone.derivePublicKey([2, ADVERTISEMENTS[protocol].protocolName], KEY_ID, identityKey)
    this.isSignedByKey = verifierOf(identityKey)
    this.isSignedFor = { SHIP: verifierOf(keyOf('SHIP')), SLAP: verifierOf(keyOf('SLAP')) }
    this.beginnings = (['SHIP', 'SLAP'] as const).map((protocol) => {
      const [lock, identity] = [keyOf(protocol), identityKey].map((key) => key.toDER() as number[])
      return {
        protocol,
        bytes: Uint8Array.from([
          33,
          ...(lock ?? []),
          OP_CHECKSIG,
          4,
          ...utf8(protocol),
          33,
          ...(identity ?? []),
        ]),
      }
    })
  }

  /**
   * The advertisement in a locking script (PushDrop, BRC-48); undefined if it is not one of this key. It must be signed by
   * the key, and locked with the key that BRC-42 derives from it for everyone.
   */
  read(lockingScript: Uint8Array): Advertisement | undefined {
    const protocol = this.claimOf(lockingScript)
    if (protocol === undefined) return undefined
    const text = Buffer.from(lockingScript).toString('latin1')
    const known = this.known.get(text) ?? { token: this.readSigned(lockingScript, protocol) }
    this.known.set(text, known)
    return known.token
  }

  /** How many outputs of a transaction claim to be tokens of this key: reading each costs a signature check. */
  claimsIn(transaction: TransactionView): number {
    const claims = firstOutputs(transaction, MAX_OUTPUTS).map(({ lockingScript }) =>
      this.claimOf(lockingScript),
    )
    return claims.filter((protocol) => protocol !== undefined).length
  }

  private claimOf(lockingScript: Uint8Array): AdvertisementProtocol | undefined {
    if (lockingScript.length > MAX_ADVERTISEMENT_BYTES) return undefined
    return this.beginnings.find(({ bytes }) => equalBytes(lockingScript.subarray(0, bytes.length), bytes))
      ?.protocol
  }

  isApproved({ txid, signature }: Approval): boolean {
    return this.isSignedByKey(approvalText(txid), fromHex(signature))
  }

  private readSigned(lockingScript: Uint8Array, protocol: AdvertisementProtocol): Advertisement | undefined {
    const fields = readPushes(lockingScript, { at: FIRST_FIELD, limit: 6 })
    const [protocolField, identity, url, name, signature] = fields
    if (!protocolField || !identity || !url || !name || !signature || fields.length !== 5) return undefined
    const topicOrService = Buffer.from(name).toString()
    const isOfProtocol =
      NAME.test(topicOrService) && topicOrService.startsWith(ADVERTISEMENTS[protocol].prefix)
    const signed = joinBytes([protocolField, identity, url, name])
    // Checks the signature last, as that takes longest.
    if (!isOfProtocol || !this.isSignedFor[protocol](signed, signature)) return undefined
    return { protocol, url: Buffer.from(url).toString(), topicOrService }
  }

  /** The outputs of a transaction that are tokens of this key, each with the topic that holds it. */
  admitted(transaction: TransactionView): { topic: string; vout: number }[] {
    return [...firstOutputs(transaction, MAX_OUTPUTS).entries()].flatMap(([vout, { lockingScript }]) => {
      const found = this.read(lockingScript)
      return found === undefined ? [] : [{ topic: ADVERTISEMENTS[found.protocol].topic, vout }]
    })
  }
}

const OP_CHECKSIG = 0xac
/** The offset after the locking key and OP_CHECKSIG. */
const FIRST_FIELD = 35
/** The SPKI header (RFC 5480) with which Node reads a compressed key on secp256k1. */
const SPKI = fromHex('3036301006072a8648ce3d020106052b8104000a032200')

/** Node's own ECDSA over SHA-256: it takes a sixth of the SDK's time, and anyone may submit look-alike tokens. */
function verifierOf(publicKey: PublicKey): Verify {
  const der = Buffer.from([...SPKI, ...(publicKey.toDER() as number[])])
  const key = createPublicKey({ key: der, format: 'der', type: 'spki' })
  return (message, signature) => verify('sha256', message, { key, dsaEncoding: 'der' }, signature)
}

/** States that the tokens of a transaction are this host's own, rather than copies. */
export interface Approval {
  txid: string
  /** DER in hex, by the key of the host. */
  signature: string
}

/** The request header that an approval is sent in, as `<txid>.<signature>`. */
export const APPROVAL_HEADER = 'X-Advertisement'

/** Signs that a transaction advertises. Tokens do not prove it, as they are not bound to it and anyone can copy them. */
export function approvalOf(key: PrivateKey, txid: string): Approval {
  return { txid, signature: key.sign(Array.from(approvalText(txid))).toDER('hex') as string }
}

function approvalText(txid: string): Uint8Array {
  return utf8(`minetree advertises with ${txid}`)
}

export async function advertisementLock(
  key: PrivateKey,
  { protocol, url, topicOrService }: Advertisement,
): Promise<LockingScript> {
  const fields = [utf8(protocol), key.toPublicKey().toDER() as number[], utf8(url), utf8(topicOrService)]
  return await new PushDrop(new CompletedProtoWallet(key)).lock(
    fields.map((field) => Array.from(field)),
    [2, ADVERTISEMENTS[protocol].protocolName],
    KEY_ID,
    'anyone',
    true,
  )
}

export function advertisementUnlock(key: PrivateKey, protocol: AdvertisementProtocol) {
  return new PushDrop(new CompletedProtoWallet(key)).unlock(
    [2, ADVERTISEMENTS[protocol].protocolName],
    KEY_ID,
    'anyone',
  )
}

/** The key and URL of this host, without a trailing slash: clients append `/submit`. */
export function advertisedHost(
  config: Pick<Config, 'serverPrivateKey' | 'hostingUrl'>,
): { key: PrivateKey; url: string } | undefined {
  const { serverPrivateKey, hostingUrl } = config
  if (serverPrivateKey === undefined || hostingUrl === undefined) return undefined
  return { key: PrivateKey.fromHex(serverPrivateKey), url: hostingUrl.replace(/\/+$/, '') }
}

export function advertisementReader(
  config: Parameters<typeof advertisedHost>[0],
): AdvertisementReader | undefined {
  const host = advertisedHost(config)
  return host && new AdvertisementReader(host.key.toPublicKey())
}
