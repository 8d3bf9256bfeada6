import { Sql } from '../../../backend/src/facts/connection.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../protocol/fake-chain.js'
import { type Answer, posted, type TestServer } from './test-server.js'
import { until } from './waiting.js'

/** A tree that grows at random but always the same, with ordinals that move: what two hosts are to have alike. */
export class SyncedWorld {
  readonly chain: FakeChain
  readonly mints = new Map<string, FakeTransaction>()
  /** Where each note was inscribed, as `<txid>_<vout>`. */
  readonly notes: string[] = []
  /** Where each ordinal stands, and on which side of the tree it belongs. */
  private readonly tips: { transaction: FakeTransaction; vout: number; side: string }[] = []
  private readonly byTxid = new Map<string, FakeTransaction>()
  private random = 1

  constructor(options: ConstructorParameters<typeof FakeChain>[0] = {}) {
    this.chain = new FakeChain(options)
    this.byTxid.set(this.chain.genesis.txid, this.chain.genesis)
  }

  /** The genesis, as it is submitted. */
  get genesis(): Uint8Array {
    return beefOf(this.chain.genesis)
  }

  /**
   * Mints so many more names, each below a name that is there; the BEEFs to submit, in order.
   *
   * @param side Only below this name.
   */
  mint(count: number, side = ''): Uint8Array[] {
    const beefs: Uint8Array[] = []
    while (beefs.length < count) {
      const parents = ['', ...this.mints.keys()].filter((name) => name.startsWith(side))
      const parent = parents[this.next(parents.length)] ?? ''
      const name = parent + 'abcdefghijklmnopqrstuvwxyz'.charAt(this.next(26))
      if (!this.mints.has(name)) beefs.push(this.mintName(name))
    }
    return beefs
  }

  mintName(name: string): Uint8Array {
    const mint = this.chain.mint(name, { funding: [this.coin(1000)] })
    this.mints.set(name, mint)
    this.tips.push({ transaction: mint, vout: 2, side: name })
    return this.beef(mint)
  }

  /** Inscribes so many ordinals; the BEEFs to submit to `tm_ordinals`. */
  inscribe(count: number, side = ''): Uint8Array[] {
    return Array.from({ length: count }, () => {
      const body = utf8(`note ${this.next(1e6)}`)
      const suffix = mapTail({ title: `a note of ${this.next(1000)}` })
      const lockingScript = inscriptionScript({ contentType: 'text/plain', body, suffix })
      const note = this.chain.spend({ inputs: [this.coin(10)], outputs: [lockingScript] })
      this.tips.push({ transaction: note, vout: 0, side })
      this.notes.push(note.outpoint(0))
      return this.beef(note)
    })
  }

  /** Moves ordinals, names among them, so many times; every third time with new content. */
  transfer(count: number, side = ''): Uint8Array[] {
    const movable = this.tips.filter((tip) => tip.side.startsWith(side))
    return Array.from({ length: count }, (_, i) => {
      const tip = movable[this.next(movable.length)]
      if (tip === undefined) throw new Error('there is no ordinal to move')
      const lock = p2pkh(this.next(1000))
      const body = utf8(`chapter ${this.next(1e6)}`)
      const lockingScript = i % 3 === 0 ? inscriptionScript({ contentType: 'text/plain', body, lock }) : lock
      // Before it a coin of another value, so that it takes both values to place it.
      const moved = this.chain.spend({
        inputs: [this.coin(7), tip],
        outputs: [{ satoshis: 7, lockingScript: p2pkh(0) }, lockingScript],
      })
      Object.assign(tip, { transaction: moved, vout: 1 })
      return this.beef(moved)
    })
  }

  private coin(satoshis: number): FakeTransaction {
    const coin = this.chain.spend({ outputs: [{ satoshis, lockingScript: p2pkh(0) }] })
    this.byTxid.set(coin.txid, coin)
    return coin
  }

  private beef(transaction: FakeTransaction): Uint8Array {
    this.byTxid.set(transaction.txid, transaction)
    const sources = transaction.transaction.inputs.map(({ txid }) => this.byTxid.get(txid))
    const held = sources.filter((source) => source !== undefined)
    return beefOf(transaction, { with: [...new Set(held)] })
  }

  private next(below: number): number {
    this.random = (this.random * 48_271) % 2_147_483_647
    return this.random % below
  }
}

/** Submits BEEFs one after another, and has each taken. */
export async function submitAll(
  server: TestServer,
  beefs: readonly Uint8Array[],
  topics?: string[],
): Promise<void> {
  for (const beef of beefs) await server.take(beef, topics)
}

/** How many outputs topics hold on a server. */
export async function admittedOn({ dataDir }: TestServer): Promise<number> {
  const index = new Sql(storeFiles(dataDir).index)
  try {
    return index.get('select count(*) as count from admission')?.count
  } finally {
    index.close()
  }
}

/** Waits until all hosts hold as much as said; then they are to hold the same. */
export async function inStep(admitted: number, ...servers: TestServer[]): Promise<void> {
  for (const server of servers)
    await until(async () => (await admittedOn(server)) >= admitted, `a host holds ${admitted} outputs`)
  const [first = {}, ...others] = servers.map((server) => server.rows())
  for (const other of others)
    for (const [table, rows] of Object.entries(first))
      expect([table, ...(other[table] ?? [])]).toEqual([table, ...rows])
}

/** What a server says of names and of what they hold: names, nodes, origins and contents, through its routes. */
export async function answersOf(server: TestServer, names: Iterable<string>): Promise<unknown[]> {
  const shown = ({ status, body, headers }: Answer): unknown => ({
    status,
    body: body.toString('latin1'),
    origin: headers['x-origin'],
    sequence: headers['x-ord-seq'],
  })
  const answers: unknown[] = [shown(await server.ask('/svc/names?limit=100'))]
  for (const name of names) {
    const { json } = await server.ask(`/svc/names/origin/${name}`)
    const { outpoint } = json as { outpoint: string }
    const paths = [
      `/svc/names/${name}`,
      `/svc/names/mine/${name}zz`,
      `/content/${outpoint}:-1`,
      `/svc/gateway/metadata/${outpoint}:-1`,
    ]
    for (const path of paths) answers.push(shown(await server.ask(path)))
  }
  return answers
}

/** An output as peers offer it. */
export interface Offered {
  txid: string
  outputIndex: number
  score: number
}

/** What a peer offers of a topic. */
export async function askOffered(
  server: Pick<TestServer, 'ask'>,
  { topic, since = 0, limit }: { topic: string; since?: number; limit?: number },
): Promise<Offered[]> {
  const asked = posted({ version: 1, since, ...(limit && { limit }) }, { 'x-bsv-topic': topic })
  const { status, body, json } = await server.ask('/requestSyncResponse', asked)
  if (status !== 200) throw new Error(`offered nothing: ${body.toString()}`)
  return (json as { UTXOList: Offered[] }).UTXOList
}

/** Asks for the transaction of an output, `<txid>_<vout>`, in the graph of an offered one. */
export async function askNode(
  server: Pick<TestServer, 'ask'>,
  { graph, outpoint = graph }: { graph: string; outpoint?: string },
): Promise<Answer> {
  const [txid, vout] = outpoint.split('_')
  const question = { graphID: graph.replace('_', '.'), txid, outputIndex: Number(vout), metadata: true }
  return await server.ask('/requestForeignGASPNode', posted(question))
}
