import type { LookupService } from '@bsv/overlay'
import fc from 'fast-check'
import { NamesLookupService } from '../../../backend/src/lookup-services/NamesLookupService.js'
import { OrdinalsLookupService } from '../../../backend/src/lookup-services/OrdinalsLookupService.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import { deed, History, historyOf, type Notice, outputOf } from '../../support/graph/history.js'
import { type FakeOutput, type FakeTransaction, p2pkh } from '../../support/protocol/fake-chain.js'
import type { OpenedStore } from '../../support/storage/engine.js'
import { shuffled } from '../../support/storage/insertion-order.js'
import { onEachSqlEngine, onEachTableEngine } from '../../support/storage/stores.js'

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
function repeatedAndShuffled(notices: Notice[], numbers: IterableIterator<number>): Notice[] {
  const repeated = notices.filter(() => Number(numbers.next().value) % 3 === 0)
  return shuffled([...notices, ...repeated], numbers)
}

onEachTableEngine(({ openStore, closeStores, runs }) => {
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
          const notices = repeatedAndShuffled(history.notices, seed)
          if (atOnce) await Promise.all(notices.map(anyOrder.deliver))
          else for (const notice of notices) await anyOrder.deliver(notice)
          expect(await anyOrder.opened.rows()).toEqual(await inOrder.opened.rows())
          await closeStores()
        },
      ),
      { numRuns: runs(15), endOnFailure: true },
    )
  })

  test.each([
    ['starts its lineage', true],
    ['received an unknown coin', false],
  ])(
    'an ordinal that %s and paid for a mint has nothing of the name, if the topic of names comes last',
    async (_, isComplete) => {
      const history = new History()
      const { chain } = history
      const coin = ({ satoshis }: { satoshis: number }): FakeTransaction =>
        chain.spend({ inputs: [], outputs: [{ satoshis, lockingScript: p2pkh(4) }] })
      await history.submit(chain.genesis)
      // Unproven, so that it comes with what it spends, if that is known.
      const submit = async (inputs: Outpoint[], output: FakeOutput): Promise<Outpoint> => {
        const { txid } = await history.submit(chain.spend({ inputs, outputs: [output] }), 'later')
        return { txid, vout: 0 }
      }
      const received = isComplete ? history.know(coin({ satoshis: 6 })) : coin({ satoshis: 1 })
      const inscription = await submit([{ txid: received.txid, vout: 0 }], outputOf('inscribed', 'a'))
      const moved = await submit([inscription], outputOf('plain', ''))
      // The output of the name takes the third 1-sat coin: the first is the node's.
      const second = { txid: history.know(coin({ satoshis: 1 })).txid, vout: 0 }
      await history.submit(chain.mint('a', { funding: [second, moved] }), 'later')
      const isOfNames = (notice: Notice): boolean =>
        ('admitted' in notice ? notice.admitted : notice.spent).topic === TOPICS.names
      const ordinals = history.notices.filter((notice) => !isOfNames(notice))
      const inOrder = servicesOver(await openStore(), history)
      for (const notice of history.notices) await inOrder.deliver(notice)
      const namesLast = servicesOver(await openStore(), history)
      for (const notice of [...ordinals, ...history.notices.filter(isOfNames)])
        await namesLast.deliver(notice)
      expect(await namesLast.opened.rows()).toEqual(await inOrder.opened.rows())
    },
  )

  test('a coin that came before what it was received from is linked when that comes', async () => {
    const history = new History()
    const { chain } = history
    const first = await history.submit(chain.inscribe({ contentType: 'text/plain', body: utf8('a') }))
    const outputs = [outputOf('inscribed', 'b')]
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
