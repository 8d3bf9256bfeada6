import type { IncomingMessage, RequestListener } from 'node:http'
import { Readable } from 'node:stream'
import { OP } from '@bsv/sdk'
import { concatBytes } from '../../../../backend/src/protocol/bytes.js'
import { decodeMineNode, isClaimed } from '../../../../backend/src/protocol/mine-node.js'
import { CrawledTree } from '../../../support/follow/crawled-tree.js'
import { JungleBusService } from '../../../support/follow/junglebus.js'
import { proofIn, recordOf } from '../../../support/protocol/block.js'
import {
  FakeChain,
  type FakeCoin,
  type FakeTransaction,
  OPEN_LOCK,
} from '../../../support/protocol/fake-chain.js'
import { HeaderChain } from '../../../support/server/header-chain.js'
import { HeaderService, headersSettings } from '../../../support/server/header-service.js'
import { treeOf } from '../../../support/server/test-server.js'
import type { Attack, Scene } from '../attack.js'
import { bodyDeeds, sendInChunks } from '../body-deeds.js'
import type { Handler } from '../hostile-server.js'
import { doing } from '../index-front.js'
import type { Stage } from '../stage.js'

/** A chain in which somebody owns the name `a`, and a source and headers of it. */
class OwnedName {
  readonly chain = new FakeChain()
  readonly headers = new HeaderChain()
  readonly service = new JungleBusService()
  readonly mint: FakeTransaction
  /** Coins that anything unlocks. */
  readonly purse: FakeTransaction
  private last: FakeCoin

  constructor({ coins = 10 }: { coins?: number } = {}) {
    const outputs = Array.from({ length: coins }, () => ({ satoshis: 5000, lockingScript: OPEN_LOCK }))
    this.purse = this.chain.spend({ inputs: [], outputs })
    this.mint = this.chain.mint('a', {
      funding: [{ transaction: this.purse, vout: 0 }],
      ownerLock: OPEN_LOCK,
    })
    const proven = [this.chain.genesis, this.purse, this.mint]
    this.prove(...proven)
    this.last = { transaction: this.mint, vout: 2 }
  }

  /** Puts transactions into a block. */
  prove(...transactions: FakeTransaction[]): void {
    this.headers.mine(transactions)
    for (const each of transactions) this.service.know(this.record(each))
  }

  record(transaction: FakeTransaction) {
    const path = this.headers.branch.path(transaction.txid)
    return path === undefined
      ? recordOf(transaction)
      : { ...recordOf(transaction, path.blockHeight), proof: proofIn(path, transaction) }
  }

  /** Moves the name on. What is behind it may be of any size. */
  move({ lock = OPEN_LOCK, more = [], outputs = [] }: Partial<Move> = {}): FakeTransaction {
    const moved = this.chain.spend({
      inputs: [this.last, ...more],
      outputs: [{ satoshis: 1, lockingScript: lock }, ...outputs],
    })
    this.last = { transaction: moved, vout: 0 }
    return moved
  }

  /** The name moves on whenever somebody asks whether it has. */
  movesWhenAsked(move: () => FakeTransaction, proven: (moved: FakeTransaction) => void): void {
    this.service.onQuestion = (path) => {
      const { transaction, vout } = this.last as { transaction: FakeTransaction; vout: number }
      if (path === `/v1/txo/spend/${transaction.txid}_${vout}`) proven(move())
    }
  }
}

interface Move {
  lock: Uint8Array
  more: FakeCoin[]
  outputs: { satoshis: number; lockingScript: Uint8Array }[]
}

interface Sources {
  /** What is asked. */
  source: Handler
  headers: HeaderChain | 'scripts-only'
  chain: FakeChain
  /** What the command is told beside. */
  args?: string[]
}

async function crawlScene(stage: Stage, { source, headers, chain, args = [] }: Sources): Promise<Scene> {
  const { url } = await stage.serve(source)
  const settings =
    headers === 'scripts-only'
      ? { CHAIN_TRACKER: headers }
      : headersSettings(headers, (await stage.serve(handlerOf(new HeaderService(headers).listener))).url)
  const env = {
    ...treeOf(chain.deployment),
    ...settings,
    CHAIN_SOURCE_RATE: '10000',
    DATA_DIR: await stage.folder(),
  }
  return { args: ['crawl', '--source', url, ...args], env }
}

/** A listener as a handler: the request was read already, and what nobody reads of an answer is not sent. */
function handlerOf(listener: RequestListener): Handler {
  return ({ method, path, headers, body }, response) => {
    const end = response.end.bind(response)
    response.end = (sent?: unknown) => {
      if (sent instanceof Uint8Array) sendInChunks(response, sent)
      else end(sent)
      return response
    }
    const request = Object.assign(Readable.from(body.length > 0 ? [body] : []), {
      method,
      url: path,
      headers,
    })
    listener(request as unknown as IncomingMessage, response)
  }
}

const sourceOf = ({ service }: OwnedName): Handler => handlerOf(service.listener)

/** What a source can do to a crawl, and the headers service. */
export function crawlAttacks(): Attack[] {
  const source = (deed: string, sources: (stage: Stage) => Sources): Attack => ({
    ...{ target: 'crawl', server: 'source', deed },
    set: async (stage) => await crawlScene(stage, sources(stage)),
  })
  /** What takes half a minute of work. */
  const long = (...attack: Parameters<typeof source>): Attack => ({
    ...source(...attack),
    atNight: true,
  })
  const owned = (
    deed: string,
    prepare: (name: OwnedName) => void,
    options?: ConstructorParameters<typeof OwnedName>[0],
  ) =>
    source(deed, () => {
      const name = new OwnedName(options)
      prepare(name)
      return { source: sourceOf(name), headers: name.headers, chain: name.chain }
    })
  return [
    ...bodyDeeds().map(({ name, deed, atNight }) => ({
      ...source(name, (stage) => {
        const { headers, chain } = new CrawledTree()
        return { source: doing(deed, stage), headers, chain }
      }),
      atNight,
    })),
    owned('the name moves on without end, in no block', (name) => {
      name.movesWhenAsked(
        () => name.move(),
        (moved) => name.service.know(recordOf(moved)),
      )
    }),
    owned('the same, through scripts that take long', (name) => {
      name.movesWhenAsked(
        () => name.move({ lock: SLOW_LOCK }),
        (moved) => name.service.know(recordOf(moved)),
      )
    }),
    long('the name moves on without end, in blocks that nobody checks', () => {
      const name = new OwnedName()
      let height = 900_000
      name.movesWhenAsked(
        () => name.move(),
        (moved) => name.service.know(recordOf(moved, height++)),
      )
      return { source: sourceOf(name), headers: 'scripts-only', chain: name.chain }
    }),
    source('a tree of mints without end, in no block', () => {
      const name = new OwnedName({ coins: 3000 })
      const { chain, service } = name
      let coins = 1
      const domains = new Map<string, string>([
        [`${name.mint.txid}_0`, ''],
        [`${name.mint.txid}_1`, 'a'],
      ])
      service.onQuestion = (path) => {
        const [, outpoint = ''] = /^\/v1\/txo\/spend\/(\w+)$/.exec(path) ?? []
        const domain = domains.get(outpoint)
        if (domain === undefined) return
        domains.delete(outpoint)
        const character = [...'0123456789abcdefghijklmnopqrstuvwxyz'].find((each) =>
          isFree(chain, domain, each),
        )
        if (character === undefined) return
        const funding = [{ transaction: name.purse, vout: coins++ }]
        const mint = chain.mint(domain + character, { funding, ownerLock: OPEN_LOCK })
        domains.set(mint.outpoint(0), domain).set(mint.outpoint(1), domain + character)
        service.know(recordOf(mint))
      }
      return { source: sourceOf(name), headers: name.headers, chain }
    }),
    owned('a transfer of 72 MB', (name) => {
      name.prove(
        name.move({ outputs: [{ satoshis: 0, lockingScript: new Uint8Array(72_000_000).fill(OP_RETURN) }] }),
      )
    }),
    long('three transfers of 70 MB at once', () => {
      const name = new OwnedName()
      const { chain } = name
      const large = { satoshis: 0, lockingScript: new Uint8Array(70_000_000).fill(OP_RETURN) }
      for (const [index, other] of ['b', 'c', 'd'].entries()) {
        const funding = [{ transaction: name.purse, vout: 1 + index }]
        const mint = chain.mint(other, { funding, ownerLock: OPEN_LOCK })
        const outputs = [{ satoshis: 1, lockingScript: OPEN_LOCK }, large]
        name.prove(mint, chain.spend({ inputs: [{ transaction: mint, vout: 2 }], outputs }))
      }
      return { source: sourceOf(name), headers: name.headers, chain }
    }),
    owned('a transfer that joins 2,000 coins of transactions of 30 KB', (name) => {
      const { chain } = name
      const stuffing = { satoshis: 0, lockingScript: new Uint8Array(30_000).fill(OP_RETURN) }
      const coins = Array.from({ length: 2000 }, () => {
        return chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript: OPEN_LOCK }, stuffing] })
      })
      // A few per block: each path is computed separately.
      for (let from = 0; from < coins.length; from += 8) name.prove(...coins.slice(from, from + 8))
      const outputs = Array.from({ length: 2000 }, () => ({ satoshis: 1, lockingScript: OPEN_LOCK }))
      name.prove(name.move({ more: coins.map((transaction) => ({ transaction, vout: 0 })), outputs }))
    }),
    owned('a transfer with 3,000 unproven ancestors', (name) => {
      let coin: FakeCoin = { transaction: name.purse, vout: 5 }
      for (let step = 0; step < 3000; step++) {
        const transaction = name.chain.spend({
          inputs: [coin],
          outputs: [{ satoshis: 5000, lockingScript: OPEN_LOCK }],
        })
        name.service.know(recordOf(transaction))
        coin = { transaction, vout: 0 }
      }
      name.service.know(
        recordOf(name.move({ more: [coin], outputs: [{ satoshis: 1, lockingScript: OPEN_LOCK }] })),
      )
    }),
    owned('spenders that do not spend', ({ service, mint, purse, chain }) => {
      for (const vout of [0, 1, 2]) service.say({ txid: mint.txid, vout }, purse.txid)
      service.say({ txid: chain.genesis.txid, vout: 0 }, mint.txid)
    }),
    source('answers after 20 seconds, of which the command has 30', () => {
      const name = new OwnedName()
      name.service.know(recordOf(name.move()))
      name.service.delay = 20_000
      return {
        ...{ source: sourceOf(name), headers: name.headers, chain: name.chain },
        args: ['--max-time', '30'],
      }
    }),
    owned('busy for 50 seconds before each answer', ({ service }) => {
      service.fault = (_, nth) => (nth % 2 === 0 ? { kind: 'busy', until: '50' } : undefined)
    }),
    owned('busy for a year', ({ service }) => {
      service.fault = () => ({ kind: 'busy', until: '31536000' })
    }),
    ...bodyDeeds('some').map(
      ({ name: deedName, deed, atNight }): Attack => ({
        ...{ target: 'crawl', server: 'headers', deed: deedName, atNight },
        async set(stage) {
          const name = new OwnedName()
          const { chain } = name
          const scene = await crawlScene(stage, { source: sourceOf(name), headers: 'scripts-only', chain })
          const { url } = await stage.serve(doing(deed, stage))
          return { ...scene, env: { ...scene.env, ...headersSettings(name.headers, url) } }
        },
      }),
    ),
  ]
}

function isFree(chain: FakeChain, domain: string, character: string): boolean {
  const { claimed } = decodeMineNode(chain.node(domain).lockingScript)
  return !isClaimed(claimed, character.charCodeAt(0))
}

const OP_RETURN = 0x6a

/** A lock that any push opens, after hashes of an item of 2.6 MB: near what a submission may cost. */
const SLOW_LOCK = concatBytes(
  Uint8Array.of(OP.OP_DROP, OP.OP_1, 3, 0x40, 0xac, 0x27, OP.OP_NUM2BIN),
  new Uint8Array(3 * 60).map((_, at) => [OP.OP_DUP, OP.OP_RIPEMD160, OP.OP_DROP][at % 3] ?? 0),
  Uint8Array.of(OP.OP_DROP, OP.OP_1),
)

/** What a crawl takes where nobody means harm. */
export const HONEST_CRAWL: Attack = {
  ...{ target: 'crawl', server: 'honest', deed: 'a tree of 11 mints' },
  async set(stage) {
    const tree = new CrawledTree()
    const service = new JungleBusService()
    service.know(...tree.records)
    return await crawlScene(stage, {
      source: handlerOf(service.listener),
      headers: tree.headers,
      chain: tree.chain,
    })
  },
}
