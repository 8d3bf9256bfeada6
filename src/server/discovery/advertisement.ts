import {
  BigNumber,
  CompletedProtoWallet,
  ECDSA,
  Hash,
  KeyDeriver,
  LockingScript,
  type PrivateKey,
  type PublicKey,
  PushDrop,
  Signature,
  Utils,
} from '@bsv/sdk'
import { LRUCache } from 'lru-cache'
import { equalBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { firstOutputs, type TransactionView } from '../../../backend/src/protocol/transaction.js'

/** SHIP advertises a topic (BRC-88), SLAP a lookup service. */
export type AdvertisementProtocol = 'SHIP' | 'SLAP'

/** What a token says: that this host has a topic or a lookup service. */
export interface Advertisement {
  protocol: AdvertisementProtocol
  /** Where the host answers. */
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
/** BRC-87. */
const NAME = /^(?=.{1,50}$)(?:tm_|ls_)[a-z]+(?:_[a-z]+)*$/
/** Longer than a token with a URL of 700 bytes. */
export const MAX_ADVERTISEMENT_BYTES = 1000
/** So many scripts are remembered. */
const MAX_KNOWN = 1000
/** So many outputs of a transaction are looked at: each that claims to be ours costs the check of a signature. */
const MAX_OUTPUTS = 32

/** Reads the tokens of one identity key, and of nobody else. */
export class AdvertisementReader {
  private readonly lockingKeys: Record<AdvertisementProtocol, PublicKey>
  private readonly beginnings: { protocol: AdvertisementProtocol; bytes: Uint8Array }[]
  /** What scripts say, by their bytes: a token can be copied by anyone, and a signature takes milliseconds to check. */
  private readonly known = new LRUCache<string, { token: Advertisement | undefined }>({ max: MAX_KNOWN })

  /** @param identityKey The public key of the host. */
  constructor(readonly identityKey: PublicKey) {
    const anyone = new KeyDeriver('anyone')
    const keyOf = (protocol: AdvertisementProtocol): PublicKey =>
      anyone.derivePublicKey([2, ADVERTISEMENTS[protocol].protocolName], KEY_ID, identityKey)
    this.lockingKeys = { SHIP: keyOf('SHIP'), SLAP: keyOf('SLAP') }
    this.beginnings = (['SHIP', 'SLAP'] as const).map((protocol) => {
      const [lock, identity] = [this.lockingKeys[protocol], identityKey].map((key) => key.toDER() as number[])
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
   * The advertisement in a locking script (PushDrop, BRC-48); undefined if it is none of this key. It must be signed by the
   * key, and locked with the one that BRC-42 derives of it for everyone.
   */
  read(lockingScript: Uint8Array): Advertisement | undefined {
    if (lockingScript.length > MAX_ADVERTISEMENT_BYTES) return undefined
    const beginning = this.beginnings.find(({ bytes }) =>
      equalBytes(lockingScript.subarray(0, bytes.length), bytes),
    )
    if (beginning === undefined) return undefined
    const text = Buffer.from(lockingScript).toString('latin1')
    const known = this.known.get(text) ?? { token: this.readSigned(lockingScript, beginning.protocol) }
    this.known.set(text, known)
    return known.token
  }

  /** Whether the holder of the key says that a transaction advertises: see {@link approvalOf}. */
  isApproved({ txid, signature }: Approval): boolean {
    try {
      return this.identityKey.verify(approvalText(txid), Signature.fromDER(signature, 'hex'))
    } catch {
      // A stranger's signature.
      return false
    }
  }

  private readSigned(lockingScript: Uint8Array, protocol: AdvertisementProtocol): Advertisement | undefined {
    try {
      const { fields } = PushDrop.decode(LockingScript.fromBinary(Array.from(lockingScript)))
      const [, , url = [], name = [], signature = []] = fields
      if (fields.length !== 5 || !this.isSigned({ protocol, data: fields.slice(0, 4), signature }))
        return undefined
      const topicOrService = Utils.toUTF8(name)
      const isOfProtocol =
        NAME.test(topicOrService) && topicOrService.startsWith(ADVERTISEMENTS[protocol].prefix)
      return isOfProtocol ? { protocol, url: Utils.toUTF8(url), topicOrService } : undefined
    } catch {
      // A stranger's script.
      return undefined
    }
  }

  /** The outputs of a transaction that are tokens of this key, each with the topic that holds it. */
  admitted(transaction: TransactionView): { topic: string; vout: number }[] {
    return [...firstOutputs(transaction, MAX_OUTPUTS).entries()].flatMap(([vout, { lockingScript }]) => {
      const found = this.read(lockingScript)
      return found === undefined ? [] : [{ topic: ADVERTISEMENTS[found.protocol].topic, vout }]
    })
  }

  private isSigned(token: {
    protocol: AdvertisementProtocol
    data: number[][]
    signature: number[]
  }): boolean {
    const hash = new BigNumber(Hash.sha256(token.data.flat()))
    return ECDSA.verify(hash, Signature.fromDER(token.signature), this.lockingKeys[token.protocol])
  }
}

const OP_CHECKSIG = 0xac

/** Says of a transaction that its tokens are this host's own, and no copies of them in another transaction. */
export interface Approval {
  txid: string
  /** By the key of the host, DER as hex. */
  signature: string
}

/** The request header that an approval is sent in, as `<txid>.<signature>`. */
export const APPROVAL_HEADER = 'X-Advertisement'

/** Signs that a transaction advertises: the tokens alone do not, as they are not bound to it and anyone can copy them. */
export function approvalOf(key: PrivateKey, txid: string): Approval {
  return { txid, signature: key.sign(approvalText(txid)).toDER('hex') as string }
}

function approvalText(txid: string): number[] {
  return Array.from(utf8(`minetree advertises with ${txid}`))
}

/** The locking script of a token, signed by the host's key. */
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

/** What spends a token: its revocation. */
export function advertisementUnlock(key: PrivateKey, protocol: AdvertisementProtocol) {
  return new PushDrop(new CompletedProtoWallet(key)).unlock(
    [2, ADVERTISEMENTS[protocol].protocolName],
    KEY_ID,
    'anyone',
  )
}
