import type { LookupService } from '@bsv/overlay'
import fc from 'fast-check'
import { NamesLookupService } from '../../../backend/src/lookup-services/NamesLookupService.js'
import { OrdinalsLookupService } from '../../../backend/src/lookup-services/OrdinalsLookupService.js'
import { concatBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { isName, NAME_CHARACTERS } from '../../../backend/src/protocol/mine-node.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { History, type Mined, type Notice } from '../../support/graph/history.js'
import {
  type FakeOutput,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import type { OpenedStore } from '../../support/storage/engine.js'
import { onEachEngine, onEachSqlEngine } from '../../support/storage/stores.js'

/** One thing that somebody does; numbers choose among what there is. */
interface Deed {
  kind: 'mint' | 'inscribe' | 'move' | 'burn'
  mined: Mined
  /** What to mint below, and which character. */
  domain: number
  character: number
  nodeInputPosition: number
  /** Coins to spend: held ones, or plain ones of other values. */
  coins: ({ held: number } | { satoshis: number })[]
  outputs: ('plain' | 'larger' | 'empty' | 'inscribed' | 'larger inscribed' | 'map')[]
}

const deed: fc.Arbitrary<Deed> = fc.record({
  kind: fc.constantFrom('mint', 'inscribe', 'move', 'move', 'move', 'burn'),
  mined: fc.constantFrom('at once', 'at once', 'later', 'never'),
  domain: fc.nat(20),
  character: fc.nat({ max: 3 }),
  nodeInputPosition: fc.nat(2),
  coins: fc.array(
    fc.oneof(
      { weight: 3, arbitrary: fc.record({ held: fc.nat(20) }) },
      { weight: 1, arbitrary: fc.record({ satoshis: fc.constantFrom(0, 1, 1, 6) }) },
    ),
    { minLength: 1, maxLength: 3 },
  ),
  outputs: fc.array(
    fc.constantFrom('plain', 'plain', 'plain', 'inscribed', 'map', 'larger', 'empty', 'larger inscribed'),
    { minLength: 1, maxLength: 4 },
  ),
})

const inscribed = (body: string): Uint8Array =>
  inscriptionScript({ contentType: 'text/plain', body: utf8(body) })

function outputOf(kind: Deed['outputs'][number], body: string): FakeOutput {
  switch (kind) {
    case 'plain':
      return { satoshis: 1, lockingScript: p2pkh(3) }
    case 'larger':
      return { satoshis: 5, lockingScript: p2pkh(3) }
    case 'empty':
      return { satoshis: 0, lockingScript: p2pkh(3) }
    case 'inscribed':
      return { satoshis: 1, lockingScript: inscribed(body) }
    case 'larger inscribed':
      return { satoshis: 4, lockingScript: inscribed(body) }
    case 'map':
      return { satoshis: 1, lockingScript: concatBytes(p2pkh(3), mapTail({ body })) }
  }
}

/** What came of a list of deeds. */
async function historyOf(deeds: Deed[]): Promise<History> {
  const history = new History()
  const { chain } = history
  await history.submit(chain.genesis)
  const domains = ['']
  const spent = new Set<string>()
  for (const { kind, mined, domain, character, nodeInputPosition, coins, outputs } of deeds) {
    const nodes = new Set(domains.map((each) => JSON.stringify(chain.node(each).outpoint)))
    const free = history.ordinals.filter((coin) => {
      const key = JSON.stringify({ txid: coin.txid, vout: coin.vout })
      return !spent.has(key) && !nodes.has(key)
    })
    const take = (): Outpoint[] =>
      coins.flatMap((coin) => {
        if ('held' in coin) return free.splice(coin.held % Math.max(free.length, 1), 1)
        const output = { satoshis: coin.satoshis, lockingScript: p2pkh(0) }
        const { txid } = history.know(chain.spend({ inputs: [], outputs: [output] }))
        return [{ txid, vout: 0 }]
      })
    const inputs = kind === 'inscribe' ? [] : take()
    const submit = async (transaction: FakeTransaction): Promise<void> => {
      // The node that a mint spends as well: no coin is spent twice here.
      for (const { txid, vout } of transaction.transaction.inputs) spent.add(JSON.stringify({ txid, vout }))
      await history.submit(transaction, mined)
    }
    const body = NAME_CHARACTERS[character] ?? ''
    if (kind === 'mint') {
      const name = (domains[domain % domains.length] ?? '') + body
      if (!isName(name) || domains.includes(name)) continue
      domains.push(name)
      const position = Math.min(nodeInputPosition, inputs.length)
      await submit(chain.mint(name, { funding: inputs, nodeInputPosition: position }))
    } else if (kind === 'burn') {
      await submit(chain.spend({ inputs, outputs: [outputOf('larger', '')] }))
    } else {
      const made = outputs.map((each) => outputOf(kind === 'inscribe' ? 'inscribed' : each, body))
      await submit(chain.spend({ inputs, outputs: made }))
    }
  }
  return history
}

/** Whether a store is the host's own, or another as a plugin has it. */
type Through = 'own' | 'another'

/** Fresh services over a fresh store. */
function servicesOver(opened: OpenedStore, history: History, through: Through = 'own') {
  const store = through === 'own' ? opened.store : opened.another()
  const { deployment } = history.chain
  const services: LookupService[] = [
    new NamesLookupService({ reader: store, writer: store, deployment }),
    new OrdinalsLookupService({ reader: store, writer: store }),
  ]
  /** As the engine does it: to every service, and in an array of its own each time. */
  const deliver = async (notice: Notice): Promise<void> => {
    for (const service of services) {
      if ('admitted' in notice) {
        if (notice.admitted.mode !== 'whole-tx') throw new Error('these services take whole transactions')
        const { atomicBEEF, ...rest } = notice.admitted
        await service.outputAdmittedByTopic({ ...rest, atomicBEEF: atomicBEEF.slice() })
      } else if (service.spendNotificationMode !== 'none') {
        await service.outputSpent?.(notice.spent)
      }
    }
  }
  return { opened, deliver }
}

const order = fc.record({
  seed: fc.infiniteStream(fc.nat({ max: 0xffff })),
  through: fc.constantFrom<Through>('own', 'another'),
  atOnce: fc.boolean(),
})

/** The notices, every third twice, in the order that the numbers say. */
function shuffled(notices: Notice[], seed: Iterable<number>): Notice[] {
  const numbers = seed[Symbol.iterator]()
  const next = (): number => numbers.next().value ?? 0
  return [...notices, ...notices.filter(() => next() % 3 === 0)]
    .map((notice) => ({ notice, place: next() }))
    .sort((a, b) => a.place - b.place)
    .map(({ notice }) => notice)
}

onEachEngine(({ openStore, closeStores, runs }) => {
  afterEach(closeStores)

  test('whatever the order in which notices come, and however often, the graph is the same', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(deed, { minLength: 4, maxLength: 16 }),
        order,
        async (deeds, { seed, through, atOnce }) => {
          const history = await historyOf(deeds)
          const inOrder = servicesOver(await openStore(), history)
          for (const notice of history.notices) await inOrder.deliver(notice)
          const anyOrder = servicesOver(await openStore(), history, through)
          const notices = shuffled(history.notices, seed)
          if (atOnce) await Promise.all(notices.map(anyOrder.deliver))
          else for (const notice of notices) await anyOrder.deliver(notice)
          expect(await anyOrder.opened.rows()).toEqual(await inOrder.opened.rows())
          await closeStores()
        },
      ),
      { numRuns: runs(15), endOnFailure: true },
    )
  }, 120_000)

  test('a coin that came before what it was received from is linked when that comes', async () => {
    const history = new History()
    const { chain } = history
    const first = await history.submit(chain.inscribe({ contentType: 'text/plain', body: utf8('a') }))
    const outputs = [{ satoshis: 1, lockingScript: inscribed('b') }]
    const second = await history.submit(chain.spend({ inputs: [{ transaction: first, vout: 0 }], outputs }))
    const { opened, deliver } = servicesOver(await openStore(), history)
    const outpoint = { txid: second.txid, vout: 0 }
    const [one, two] = history.notices.filter((notice) => 'admitted' in notice)
    if (!one || !two) throw new Error('no notices')
    await deliver(two)
    expect(await opened.store.ordinals.output(outpoint)).toMatchObject({ unsettled: true })
    await deliver(one)
    const resolved = await opened.store.ordinals.output(outpoint)
    expect(resolved?.previous).toEqual({ txid: first.txid, vout: 0 })
    expect(resolved).not.toHaveProperty('unsettled')
    expect(await opened.store.ordinals.currentOutput({ txid: first.txid, vout: 0 })).toEqual(outpoint)
  })
})

onEachSqlEngine(({ openStore, closeStores }) => {
  afterEach(closeStores)

  test('a history in which everything happens is in the graph', async () => {
    const history = await historyOf(
      fc.sample(fc.array(deed, { minLength: 80, maxLength: 80 }), { seed: 7, numRuns: 1 })[0] ?? [],
    )
    const { opened, deliver } = servicesOver(await openStore(), history)
    for (const notice of history.notices) await deliver(notice)
    const rows = await opened.rows()
    const held = (table: string, fact: RegExp): number =>
      rows[table]?.filter((row) => fact.test(row)).length ?? 0
    expect(held('graph_names', /./)).toBeGreaterThan(5)
    expect(held('graph_nodes', /./)).toBeGreaterThan(10)
    expect(held('graph_outputs', /"previous_vout":\d/)).toBeGreaterThan(10)
    expect(held('graph_outputs', /"unsettled":1/)).toBeGreaterThan(0)
    expect(held('graph_outputs', /"content_length":\d/)).toBeGreaterThan(10)
    expect(held('graph_transactions', /"height":null/)).toBeGreaterThan(5)
    expect(held('graph_spends', /./)).toBeGreaterThan(40)
  })

  // What came before the transaction whose coin it received: recorded in order, it would have known it.
})
