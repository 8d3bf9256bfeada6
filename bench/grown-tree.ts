import { concatBytes, utf8 } from '../backend/src/protocol/bytes.js'
import { TOPICS } from '../backend/src/protocol/profile.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../test/support/protocol/fake-chain.js'
import { chainOfNames, LIVE_CODE_SIZE } from './support.js'

const NAMES = 20
const FILES = 20
const ORDINALS = 10
/** How often each ordinal is passed on; each third time it says something new of itself. */
const STEPS = 4
/** Mints after those names. */
const LATER = 200

/** Paths below a server, by what is read there. */
export interface Readings {
  origin: string[]
  'tip metadata': string[]
  '4 KiB': string[]
}

/** A submission as the engine takes it. */
interface Submission {
  beef: Uint8Array
  topics: string[]
}

/**
 * Names, files of 4 KiB and ordinals that moved, the same in every process. They are few: the server that stands in for
 * MongoDB looks at every document of a collection for most of what it is asked (`test/support/services/mongo.ts`).
 */
export class GrownTree {
  readonly chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
  readonly readings: Readings
  /** All of it, in order. */
  readonly submissions: Submission[] = []
  private readonly mints = new Map<string, FakeTransaction>()
  private readonly later: string[]

  constructor() {
    const { chain } = this
    const names = chainOfNames(NAMES + LATER)
    this.later = names.splice(NAMES)
    this.mints.set(chain.genesis.txid, chain.genesis)
    this.submissions.push({ beef: beefOf(chain.genesis), topics: ALL })
    for (const name of names) this.submissions.push(this.mint(name))
    const files = this.inscribe(FILES)
    let coins = this.inscribe(ORDINALS)
    const origins = coins.map(outpointOf)
    for (let step = 1; step <= STEPS; step++) coins = coins.map((coin) => this.passOn(coin, step))
    this.readings = {
      origin: names.map((name) => `/svc/names/origin/${name}`),
      'tip metadata': origins.map((outpoint) => `/svc/gateway/metadata/${outpoint}:-1`),
      '4 KiB': files.map((file) => `/content/${outpointOf(file)}`),
    }
  }

  /** One mint more, which is not among {@link submissions}. */
  next(): Submission {
    const name = this.later.shift()
    if (name === undefined) throw new Error('no name is left')
    return this.mint(name)
  }

  /** An output of 4 KiB more, which is not among {@link submissions}. */
  nextFile(): Submission {
    const coin = this.chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript: p2pkh(0) }] })
    const body = utf8(`${coin.txid}, `.repeat(4096).slice(0, 4096))
    const lockingScript = inscriptionScript({ contentType: 'text/plain', body })
    const inputs = [{ transaction: coin, vout: 0 }]
    const transaction = this.chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] })
    return { beef: beefOf(transaction, { with: [coin] }), topics: [TOPICS.ordinals] }
  }

  private mint(name: string): Submission {
    const parent = this.mints.get(this.chain.node(name.slice(0, -1)).outpoint.txid)
    const mint = this.chain.mint(name)
    this.mints.set(mint.txid, mint)
    return { beef: beefOf(mint, { with: parent ? [parent] : [] }), topics: ALL }
  }

  /** As many outputs of 4 KiB of one transaction. */
  private inscribe(count: number): Coin[] {
    const coin = this.chain.spend({ inputs: [], outputs: [{ satoshis: count, lockingScript: p2pkh(0) }] })
    const outputs = Array.from({ length: count }, (_, index) => {
      const body = utf8(`${index} of ${count}, `.repeat(4096).slice(0, 4096))
      return { satoshis: 1, lockingScript: inscriptionScript({ contentType: 'text/plain', body }) }
    })
    const transaction = this.chain.spend({ inputs: [{ transaction: coin, vout: 0 }], outputs })
    this.admit(transaction, coin)
    return outputs.map((_, vout) => ({ transaction, vout }))
  }

  private passOn(coin: Coin, step: number): Coin {
    const said = concatBytes(p2pkh(step), mapTail({ level: String(step) }))
    const lockingScript = step % 3 === 0 ? said : p2pkh(step)
    const transaction = this.chain.spend({ inputs: [coin], outputs: [{ satoshis: 1, lockingScript }] })
    this.admit(transaction, coin.transaction)
    return { transaction, vout: 0 }
  }

  private admit(transaction: FakeTransaction, parent: FakeTransaction): void {
    const beef = beefOf(transaction, { with: [parent] })
    this.submissions.push({ beef, topics: [TOPICS.ordinals] })
  }
}

interface Coin {
  transaction: FakeTransaction
  vout: number
}

const ALL = Object.values(TOPICS)

function outpointOf({ transaction, vout }: Coin): string {
  return transaction.outpoint(vout)
}
