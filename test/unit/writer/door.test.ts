import { rmSync } from 'node:fs'
import { Sql } from '../../../backend/src/facts/connection.js'
import { FACT, readTransactionFact } from '../../../backend/src/facts/log.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { recordOf } from '../../support/protocol/block.js'
import { type FakeTransaction, inscriptionScript, p2pkh } from '../../support/protocol/fake-chain.js'
import { HeaderChain } from '../../support/server/header-chain.js'
import { OpenedWriter } from '../../support/writer/opened-writer.js'

function open(...options: ConstructorParameters<typeof OpenedWriter>): OpenedWriter {
  const each = new OpenedWriter(...options)
  onTestFinished(() => each.close())
  return each
}

type Coin = [transaction: FakeTransaction, vout?: number]

const one = { satoshis: 1, lockingScript: p2pkh(1) }

/** Spends coins, or makes money from nothing that anybody knows. */
function spend({ chain }: OpenedWriter, coins: Coin[], outputs = [one]): FakeTransaction {
  const inputs = coins.map(([transaction, vout = 0]) => ({ transaction, vout }))
  return chain.spend({ inputs, outputs })
}

function inscribe(store: OpenedWriter, coins: Coin[], text: string): FakeTransaction {
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8(text) })
  return spend(store, coins, [{ satoshis: 1, lockingScript }])
}

describe('what becomes a fact', () => {
  test('the same again changes nothing', async () => {
    const store = open()
    const ordinal = inscribe(store, [], 'text')
    await store.know(ordinal, 100)
    const before = [store.log('select seq, kind, key from log'), store.changes()]
    expect(await store.know(ordinal, 100)).toMatchObject({ admitted: [], lost: [], reorganised: 0 })
    expect([store.log('select seq, kind, key from log'), store.changes()]).toEqual(before)
  })

  test('money is pending, until something admitted is built on it', async () => {
    const store = open()
    const money = spend(store, [])
    const change = spend(store, [[money]])
    const ordinal = inscribe(store, [[change]], 'text')
    const all = { money, change, ordinal }
    await store.know(money)
    await store.know(change, 100)
    expect([store.facts(all), store.pending(all)]).toEqual([[], ['money', 'change']])
    await store.know(ordinal)
    expect([store.facts(all), store.pending(all)]).toEqual([['money', 'change', 'ordinal'], []])
    // The proof came with its transaction.
    expect(store.log('select kind from log where kind = ?', FACT.proof)).toHaveLength(1)
    expect(store.index('select height from proof')).toEqual([{ height: 100 }])
  })

  test('all proofs of something pending are facts once it is one, in the order in which they first came', async () => {
    const store = open()
    const ordinal = inscribe(store, [], 'text')
    const moved = spend(store, [[ordinal]])
    for (const height of [undefined, 102, 104, 102, 103]) await store.know(moved, height)
    expect(store.log('select height from pending_proof order by n')).toEqual(
      [102, 104, 103].map((height) => ({ height })),
    )
    await store.know(ordinal)
    expect(store.index('select height from proof order by seq')).toEqual(
      [102, 104, 103].map((height) => ({ height })),
    )
    expect(store.log('select * from pending_proof')).toEqual([])
  })

  describe.each(['first', 'last'])(
    'what raises the rank of an unproven fact is one, if that comes %s',
    (place) => {
      test.each([
        ['a proof of what is built on it', ['paid'], 'proof'],
        ['a sighting of what is built on it', ['paid'], 'sighting'],
        ['a proof further down', ['paid', 'paidOn'], 'proof'],
        ['a sighting further down', ['paid', 'paidOn'], 'sighting'],
      ])('%s', async (_, raising, by) => {
        const store = open({ waiting: { maxTransactions: 10, maxBytes: 1024 * 1024 } })
        const money = spend(store, [])
        const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8('text') })
        const ordinal = spend(store, [[money]], [{ satoshis: 1, lockingScript }, one])
        const paid = spend(store, [[ordinal, 1]], [one, one])
        const paidOn = spend(store, [[paid, 0]])
        const rival = inscribe(store, [[money]], 'another text')
        const all = { ordinal, paid, paidOn, rival, unneeded: spend(store, [[paid, 1]]) }
        const raise = async (): Promise<void> => {
          for (const each of [paid, all.unneeded, ...(raising.length > 1 ? [paidOn] : [])])
            await store.know(each)
          const { txid } = raising.length > 1 ? paidOn : paid
          if (by === 'sighting') await store.writer.change('sightings', [{ txid, status: 'seen' }])
          else await store.know(raising.length > 1 ? paidOn : paid, 100)
        }
        await store.know(money, 90)
        if (place === 'first') await raise()
        await store.submit([ordinal])
        await store.submit([rival])
        if (place === 'last') await raise()
        await store.writer.change('sightings', [{ txid: rival.txid, status: 'seen' }])
        expect(store.facts(all)).toEqual(['ordinal', ...raising])
        expect(store.pending(all).filter((each) => each !== 'rival')).toEqual(['unneeded'])
      })
    },
  )

  test('what is blocked or said of a transaction is a register, written when it changes', async () => {
    const store = open()
    const { writer } = store
    const record = { kind: 'name', value: 'x', reason: 'one', since: 5 } as const
    expect(await writer.change('block', record)).toMatchObject({ result: record })
    expect(await writer.change('block', { ...record, reason: 'two', since: 6 })).toMatchObject({
      result: { reason: 'two', since: 5 },
    })
    expect(await writer.change('unblock', record)).toMatchObject({ result: true })
    expect(await writer.change('unblock', record)).toMatchObject({ result: false })
    await writer.change('evict', { txid: 'ab'.repeat(32), vout: 1 }, 1)
    await writer.change('evict', { txid: 'ab'.repeat(32), vout: 1 }, 1)
    const said = { txid: 'cd'.repeat(32), status: 'seen' } as const
    for (const changed of [[said], []])
      expect((await writer.change('sightings', [said])).result).toEqual({
        changed,
        restored: [],
        deactivated: [],
      })
    for (const value of ['v', 'v']) await writer.setting('genesis', value)
    await writer.setting('checked_tip', '7')
    const subjects = store
      .log('select key from log where kind = 5 order by seq')
      .map(({ key }) => key.subarray(0, -4).toString())
    expect(subjects).toEqual([
      'setting base',
      ...['block name x', 'block name x', 'block name x'],
      ...[`block outpoint ${'ab'.repeat(32)}_1`, `sighting ${said.txid}`, 'setting genesis'],
    ])
    expect(store.log('select * from state')).toEqual([{ name: 'checked_tip', value: '7' }])
  })

  test('what the policy did not take is noted with the transaction, and reported once', async () => {
    const rules = open().chain
    const store = open({
      rules: admissionRules({ deployment: rules.deployment, policy: { maxContentBytes: 3 } }),
    })
    const refusedOne = inscribe(store, [], 'long')
    const { refused } = await store.writer.record([recordOf(refusedOne)], { subjects: [refusedOne.txid] })
    expect(refused.map(({ topic, code }) => `${topic} ${code}`).sort()).toEqual([
      'tm_names NO_NODE_SPENT',
      'tm_ordinals CONTENT_TOO_LARGE',
    ])
    const taken = inscribe(store, [[refusedOne]], 'ok')
    await store.know(taken)
    const [first] = store.log('select key, body from log where kind = 1 order by seq')
    expect(readTransactionFact(first as never).notes.refused).toEqual([0])
  })

  test('a body in several parts is a fact of its own, before its transaction', async () => {
    const store = open()
    const large = 'x'.repeat(70_000)
    await store.know(inscribe(store, [], large), 100)
    await store.know(inscribe(store, [], 'small'), 100)
    const rows = store.index('select coff, sha from out where clen is not null order by clen desc')
    expect(rows.map(({ coff }) => coff === null)).toEqual([
      store.log('select 1 from log where kind = 4').length > 0,
      false,
    ])
  })
})

describe('what is pending', () => {
  test('is bounded: unproven ones go first, the oldest before others', async () => {
    const store = open({ pending: { maxTransactions: 2, maxBytes: 1024 * 1024 } })
    const [a, b, c, d] = [1, 2, 3, 4].map((satoshis) => spend(store, [], [{ ...one, satoshis }])) as [
      ...[FakeTransaction, FakeTransaction, FakeTransaction, FakeTransaction],
    ]
    const all = { a, b, c, d }
    await store.know(a, 100)
    await store.know(b)
    await store.know(c)
    expect(store.pending(all)).toEqual(['a', 'c'])
    await store.know(d, 100)
    expect(store.pending(all)).toEqual(['a', 'd'])
  })

  test('counts against what comes later, and is in no answer', async () => {
    const store = open()
    const coin = spend(store, [])
    const first = spend(store, [[coin]], [{ ...one, satoshis: 2 }])
    const second = inscribe(store, [[coin]], 'text')
    const all = { coin, first, second }
    await store.know(first)
    expect(await store.submit([second])).toEqual({ txid: first.txid, tier: 'unseen' })
    expect([store.facts(all), store.pending(all)]).toEqual([[], ['first', 'second']])
    // Proven, it counts. What it conflicts with is a fact, too: it would count without that proof.
    await store.know(second, 100)
    expect([store.facts(all), store.pending(all)]).toEqual([['first', 'second'], []])
    expect(await store.submit([first])).toEqual({ txid: second.txid, tier: 'proven' })
  })

  test('that was in the way of something makes room for it when it is deleted', async () => {
    const store = open({ pending: { maxTransactions: 1, maxBytes: 1024 * 1024 } })
    const coin = spend(store, [])
    const first = spend(store, [[coin]], [{ ...one, satoshis: 2 }])
    const second = inscribe(store, [[coin]], 'text')
    await store.know(first)
    expect(await store.submit([second])).toEqual({ txid: first.txid, tier: 'unseen' })
    await store.know(spend(store, [], [{ ...one, satoshis: 7 }]))
    expect(store.facts({ first, second })).toEqual(['second'])
  })
})

describe('a submission that loses', () => {
  /** A tree whose root is squatted by a mint, and an honest mint of the same node with one built on it. */
  async function squatted(maxWaiting = 100) {
    const store = open({ waiting: { maxTransactions: maxWaiting, maxBytes: 1024 * 1024 } })
    const { chain } = store
    await store.know(chain.genesis, 100)
    const root = chain.node('')
    const squat = chain.mint('s', { from: root })
    const honest = chain.mint('h')
    const further = chain.mint('ho')
    return { store, root, squat, honest, further, all: { squat, honest, further } }
  }

  test.each([1, 2, 3])(
    'to a mined one that it spends, too, is refused, %s payments behind what that conflicts with',
    async (length) => {
      const store = open()
      const coin = spend(store, [])
      const line = [spend(store, [[coin]])]
      while (line.length < length) line.push(spend(store, [[line.at(-1) as FakeTransaction]]))
      for (const each of [coin, ...line]) await store.know(each)
      const mined = spend(store, [[coin]], [{ ...one, satoshis: 2 }])
      const subject = spend(store, [[line.at(-1) as FakeTransaction], [mined]])
      const { lost } = await store.writer.record([recordOf(mined, 101), recordOf(subject)], {
        subjects: [subject.txid],
        keepLost: {},
      })
      expect(lost).toEqual([{ txid: subject.txid, reason: { txid: mined.txid, tier: 'proven' } }])
      expect(store.pending({ subject })).toEqual([])
    },
  )

  test('is what the network rejected, once what is built on it is proven no more', async () => {
    const store = open()
    const coin = spend(store, [])
    const rejected = spend(store, [[coin]])
    const paid = spend(store, [[rejected]])
    await store.know(coin)
    await store.know(rejected)
    await store.writer.change('sightings', [{ txid: rejected.txid, status: 'rejected' }])
    await store.know(paid, 101)
    const waiting = () =>
      store.log('select waiting from pending order by arrived').map((each) => each.waiting)
    expect(waiting()).toEqual([0, 0, 0])
    const { proof } = recordOf(paid, 101)
    if (proof !== undefined) await store.writer.change('disprove', proof)
    expect(waiting()).toEqual([0, 1, 1])
  })

  test('stays what it is where the network rejects what a proven one is built on', async () => {
    const store = open()
    const coins = [1, 2].map((satoshis) => spend(store, [], [{ ...one, satoshis }])) as [
      FakeTransaction,
      FakeTransaction,
    ]
    const lost = spend(store, [[coins[0]], [coins[1]]])
    const first = spend(store, [[coins[0]]])
    const second = spend(store, [[first], [coins[1]]])
    for (const each of [...coins, lost, first, second]) await store.submit([each])
    await store.know(spend(store, [[second]]), 101)
    const counting = () =>
      store.log('select waiting from pending order by arrived').map((each) => each.waiting === 0)
    const before = counting()
    expect(before).toEqual([true, true, false, true, true, true])
    await store.writer.change('sightings', [{ txid: second.txid, status: 'rejected' }])
    expect(counting()).toEqual(before)
  })

  test('wins by a proof of its own, and loses with its block', async () => {
    const { store, squat, honest, all } = await squatted()
    await store.submit([squat])
    await store.submit([honest])
    await store.know(honest, 101)
    expect([store.names(), store.pending(all)]).toEqual([['h'], []])
    const { proof } = recordOf(honest, 101)
    if (proof === undefined) throw new Error('it has a proof')
    expect(await store.writer.change('disprove', proof)).toMatchObject({ result: 1, reorganised: 2 })
    expect(await store.writer.change('disprove', proof)).toMatchObject({ result: 0, reorganised: 0 })
    expect(store.names()).toEqual(['s'])
    // The chain has that block again.
    await store.know(honest, 101)
    expect(store.names()).toEqual(['h'])
  })

  test('wins when the network rejects the winner, or a block no longer has it', async () => {
    const { store, squat, honest } = await squatted()
    await store.submit([squat])
    await store.submit([honest])
    await store.writer.change('sightings', [{ txid: squat.txid, status: 'rejected' }])
    expect(store.names()).toEqual(['h'])
    await store.know(squat, 101)
    expect(store.names()).toEqual(['s'])
    const { proof } = recordOf(squat, 101)
    if (proof !== undefined) await store.writer.change('disprove', proof)
    expect(store.names()).toEqual(['h'])
  })

  test('wins by what was seen, once the winner loses its block', async () => {
    const { store, squat, honest } = await squatted()
    await store.submit([squat])
    await store.submit([honest])
    await store.know(squat, 101)
    await store.writer.change('sightings', [{ txid: honest.txid, status: 'seen' }])
    expect(store.names()).toEqual(['s'])
    const { proof } = recordOf(squat, 101)
    if (proof !== undefined) await store.writer.change('disprove', proof)
    expect(store.names()).toEqual(['h'])
  })

  test('wins by what was seen, once a reorganisation takes the block of a pending winner', async () => {
    const store = open()
    await store.writer.setting('tracker', 'headers')
    await store.reopen()
    const coin = spend(store, [])
    const winner = spend(store, [[coin]])
    const loser = inscribe(store, [[coin]], 'text')
    for (const each of [coin, winner]) await store.know(each)
    await store.submit([loser])
    const chain = new HeaderChain()
    const { first } = chain
    const height = first.height + 1
    const [before, after] = [chain.branch.mine([], winner.txid), chain.fork(first.height)]
    const taken = [after.mine(), after.mine()].map(({ header }) => header.bytes)
    const replace = async (headers: Uint8Array, tip: Uint8Array | undefined, from = height) =>
      await store.writer.change('replaceHeaders', { height: from, headers, tip })
    await replace(first.bytes, undefined, first.height)
    await replace(before.header.bytes, first.bytes)
    await store.know(winner, height)
    await store.writer.change('sightings', [{ txid: loser.txid, status: 'seen' }])
    expect(store.facts({ winner, loser })).toEqual([])
    await replace(Buffer.concat(taken), before.header.bytes)
    expect(store.facts({ winner, loser })).toEqual(['winner', 'loser'])
  })

  test('wins when what it lost to loses with what that is built on', async () => {
    const store = open()
    const coins = spend(store, [], [one, one])
    const parent = spend(store, [[coins, 0]])
    const winner = spend(store, [[parent], [coins, 1]])
    const loser = inscribe(store, [[coins, 1]], 'text')
    for (const each of [coins, parent, winner]) await store.know(each)
    expect(await store.submit([loser])).toEqual({ txid: winner.txid, tier: 'unseen' })
    await store.know(spend(store, [[coins, 0]], [{ ...one, satoshis: 2 }]), 101)
    expect(store.facts({ winner, loser })).toEqual(['loser'])
  })

  test('is a fact if one is built on it, which loses with it', async () => {
    const store = open()
    const coin = spend(store, [])
    const winner = inscribe(store, [[coin]], 'text')
    const loser = spend(store, [[coin]])
    const ordinal = inscribe(store, [[loser]], 'another text')
    await store.know(coin)
    await store.submit([winner])
    await store.know(ordinal, 101)
    const { proof } = recordOf(ordinal, 101)
    if (proof !== undefined) await store.writer.change('disprove', proof)
    expect(await store.submit([loser])).toEqual({ txid: winner.txid, tier: 'unseen' })
    const inactive = store
      .index('select txid from tx where active = 0')
      .map(({ txid }) => txid.toString('hex'))
    expect(new Set(inactive)).toEqual(new Set([loser.txid, ordinal.txid]))
  })

  test('wins when the winner was pruned', async () => {
    const { store, squat, honest, all } = await squatted()
    await store.submit([squat])
    await store.submit([honest])
    await store.reopen(({ log, index }) => {
      const sql = new Sql(log)
      sql.run('delete from log where key = ?', Buffer.from(squat.txid, 'hex'))
      sql.close()
      rmSync(index)
    })
    await store.writer.change('sightings', [])
    expect([store.names(), store.pending(all)]).toEqual([['h'], []])
  })

  test.each([
    ['a client does not want that', false, undefined],
    ['the winner is mined', true, {}],
  ])('is not kept if %s', async (_, isMined, keepLost) => {
    const { store, squat, honest, all } = await squatted()
    await store.know(squat, isMined ? 101 : undefined)
    const before = store.count()
    const { lost } = await store.writer.record([recordOf(honest)], {
      subjects: [honest.txid],
      ...(keepLost && { keepLost }),
    })
    expect(lost).toEqual([
      { txid: honest.txid, reason: { txid: squat.txid, tier: isMined ? 'proven' : 'unseen' } },
    ])
    expect([store.count(), store.pending(all)]).toEqual([before, []])
  })

  test('comes before what brings the proof that it waited for, as if the proof had come alone', async () => {
    const store = open()
    const parent = spend(store, [])
    await store.writer.change('sightings', [{ txid: parent.txid, status: 'rejected' }])
    const [first, second] = [inscribe(store, [[parent]], 'first'), inscribe(store, [[parent]], 'second')]
    expect(await store.submit([first, parent])).toEqual({ txid: parent.txid, tier: 'rejected' })
    const { lost } = await store.writer.record([recordOf(parent, 101), recordOf(second)], {
      subjects: [second.txid],
      keepLost: {},
    })
    expect(lost).toEqual([{ txid: second.txid, reason: { txid: first.txid, tier: 'unseen' } }])
    const all = { first, second }
    expect([store.facts(all), store.pending(all)]).toEqual([['first'], ['second']])
  })

  test('is not kept if it is built on two spends of one coin', async () => {
    const { store, squat, honest } = await squatted()
    const hopeless = spend(store, [
      [squat, 2],
      [honest, 2],
    ])
    const before = store.count()
    expect(await store.submit([hopeless, squat, honest])).toMatchObject({ tier: 'unseen' })
    expect([store.count(), store.pending({ hopeless, squat, honest })]).toEqual([before, []])
  })

  test('waits within a limit, at which the client that has the most loses its oldest', async () => {
    const { store, root, squat, honest, further } = await squatted(4)
    await store.submit([squat])
    await store.submit([honest], { client: 'bb' })
    const flood = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => store.chain.mint(name, { from: root }))
    const all = { ...Object.fromEntries(flood.map((each, at) => [`${at}`, each])), honest, further }
    for (const each of flood) await store.submit([each], { client: 'cc' })
    expect(store.pending(all)).toEqual(['3', '4', '5', 'honest'])
    await store.submit([further, honest], { client: 'bb' })
    expect(store.pending(all)).toEqual(['4', '5', 'honest', 'further'])
    await store.writer.change('sightings', [{ txid: further.txid, status: 'seen' }])
    expect([store.names(), store.pending(all)]).toEqual([
      ['h', 'ho'],
      ['4', '5'],
    ])
  })

  test('takes no place of others, however many come at once', async () => {
    const { store, squat, honest } = await squatted(4)
    await store.submit([squat])
    await store.submit([honest], { client: 'bb' })
    await store.submit([inscribe(store, [[squat, 2]], 'rival'), squat])
    const flood: FakeTransaction[] = []
    while (flood.length < 4)
      flood.push(spend(store, [flood.length > 0 ? [flood.at(-1) as FakeTransaction] : [squat, 2]]))
    expect(await store.submit([...flood].reverse(), { client: 'cc' })).toMatchObject({ tier: 'unseen' })
    const all = { ...Object.fromEntries(flood.map((each, at) => [`${at}`, each])), honest }
    // Of those that are new, what is built on the others goes first.
    expect(store.pending(all)).toEqual(['0', '1', '2', 'honest'])
    await store.writer.change('sightings', [{ txid: honest.txid, status: 'seen' }])
    expect(store.names()).toEqual(['h'])
  })

  test('keeps the ancestors that came along and are needed', async () => {
    const { store, squat, honest } = await squatted()
    await store.submit([squat])
    const ordinal = inscribe(store, [], 'text')
    const both = spend(store, [[honest, 2], [ordinal]])
    const all = { honest, ordinal, both }
    expect(await store.submit([both, honest, ordinal])).toMatchObject({ txid: squat.txid })
    expect([store.facts(all), store.pending(all)]).toEqual([['ordinal'], ['honest', 'both']])
  })
})
