import { transactionFact } from '../../../backend/src/facts/log.js'
import { register } from '../../../backend/src/facts/registers.js'
import { dependency } from '../../../backend/src/graph/dependencies.js'
import { canonicalRows } from '../../../backend/src/index/canonical.js'
import { FakeIndex } from '../../support/facts/fake-index.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../../support/protocol/fake-chain.js'

function open(chain: FakeChain): FakeIndex {
  const index = new FakeIndex(chain)
  onTestFinished(() => index.close())
  return index
}

const text = (body: string) => ({ contentType: 'text/plain', body: Buffer.from(body) })
const BLOCK = { height: 100, root: 'ab'.repeat(32) }

/** An ordinal and its moves: every third adds MAP, so that it has several snapshots. */
function lineage(chain: FakeChain, steps: number): FakeTransaction[] {
  const purse = chain.spend({ inputs: [], outputs: [{ satoshis: 9, lockingScript: p2pkh(0) }] })
  const inscribed = { satoshis: 1, lockingScript: inscriptionScript(text('first')) }
  const all = [purse, chain.spend({ inputs: [{ transaction: purse, vout: 0 }], outputs: [inscribed] })]
  for (let step = 1; step < steps; step++) {
    const map = mapTail({ [`key ${step % 20}`]: 'x'.repeat(300) })
    const lockingScript = step % 3 === 0 ? Buffer.concat([p2pkh(step), map]) : p2pkh(step)
    const transaction = all.at(-1) as FakeTransaction
    all.push(chain.spend({ inputs: [{ transaction, vout: 0 }], outputs: [{ satoshis: 1, lockingScript }] }))
  }
  return all
}

function rowsOf(chain: FakeChain, fill: (index: FakeIndex) => void): Record<string, string[]> {
  const index = open(chain)
  fill(index)
  // The seq of a fact is that of its place.
  const { tx: _, proof: __, missing: ___, ...rows } = canonicalRows(index.sql)
  return rows
}

describe('a lineage', () => {
  const chain = new FakeChain()
  const all = lineage(chain, 90)
  const inOrder = () => rowsOf(chain, (index) => index.transactions(...all))

  test('has numbers and snapshots of its MAP', () => {
    const index = open(chain)
    index.transactions(...all)
    const tip = all.at(-1) as FakeTransaction
    expect(index.output(tip, 0, 'step, origin, run')).toMatchObject({ step: 89, origin: 0, run: null })
    const kept = index.sql.get('select count(*) as count, sum(length(bytes)) as bytes from snap')
    const said = index.sql.get('select sum(mlen) as bytes from out')
    expect(kept?.count).toBeGreaterThan(2)
    expect(kept?.bytes).toBeLessThan(4 * said?.bytes)
  })

  test('leaves out the MAP of a blocked step in all later snapshots, and has it again', () => {
    const blocked = register.block({ kind: 'outpoint', value: (all[4] as FakeTransaction).outpoint(0) })
    const value = (is: boolean) => ({ blocked: is, reason: 'a test', since: 1 })
    const before = rowsOf(chain, (index) => {
      index.register(blocked, value(true))
      index.transactions(...all)
    })
    const after = rowsOf(chain, (index) => {
      index.transactions(...all)
      index.register(blocked, value(true))
    })
    const again = rowsOf(chain, (index) => {
      index.transactions(...all)
      index.register(blocked, value(true))
      index.register(blocked, value(false))
    })
    expect(after.snap).toEqual(before.snap)
    expect(after.found).toEqual(before.found)
    expect(again.snap).toEqual(inOrder().snap)
    expect(again.snap).not.toEqual(after.snap)
  })

  test('of which the start is missing says where, and by whom it is held', () => {
    const index = open(chain)
    const inscribed = all[1] as FakeTransaction
    index.transactions(inscribed, ...all.slice(2))
    const holes = index.sql.all('select hex(t.txid) as txid, m.vout from missing m join tx t on t.id = m.tid')
    expect(holes).toEqual([{ txid: inscribed.txid.toUpperCase(), vout: 0 }])
    const found = index.sql.all('select o.oid, f.lin, f.okey from found f join out o on o.oid = -f.lin')
    const [head] = index.sql.all('select tkey from out where tid = (select tid from missing)')
    expect(found).toHaveLength(1)
    expect(found[0]?.okey).toBe(head?.tkey)
    index.transactions(all[0] as FakeTransaction)
    expect(index.sql.all('select * from missing')).toEqual([])
    expect(index.sql.all('select * from found where lin < 0')).toEqual([])
    expect(index.sql.all('select * from run')).toEqual([])
  })
})

test('a claimed parent does not count if it is a coin in front of the ordinal', () => {
  const chain = new FakeChain()
  const ordinal = lineage(chain, 1)
  const plain = { satoshis: 1, lockingScript: p2pkh(1) }
  const coin = chain.spend({
    inputs: [{ transaction: ordinal[0] as FakeTransaction, vout: 0 }],
    outputs: [plain],
  })
  const begun = chain.spend({
    inputs: [{ transaction: coin, vout: 0 }],
    outputs: [{ satoshis: 1, lockingScript: inscriptionScript(text('begun')) }],
  })
  const claims = (of: FakeTransaction) => ({
    satoshis: 1,
    lockingScript: inscriptionScript({ ...text('child'), parent: { txid: of.txid, vout: 0 } }),
  })
  const both = chain.spend({
    inputs: [{ transaction: begun, vout: 0 }],
    outputs: [plain, claims(coin), claims(begun)],
  })
  const index = open(chain)
  index.transactions(ordinal[0] as FakeTransaction, coin, begun, both)
  expect(index.output(coin, 0, 'carrier')).toMatchObject({ carrier: 1 })
  expect([1, 2].map((vout) => index.output(both, vout, 'pok'))).toMatchObject([{ pok: 0 }, { pok: 1 }])
})

describe('conflicts', () => {
  const chain = new FakeChain()
  const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript: p2pkh(0) }] })
  const spending = (body: string) =>
    chain.spend({
      inputs: [{ transaction: coin, vout: 0 }],
      outputs: [{ satoshis: 1, lockingScript: inscriptionScript(text(body)) }],
    })
  const [one, other] = [spending('one'), spending('other')]
  const built = chain.spend({
    inputs: [{ transaction: one, vout: 0 }],
    outputs: [{ satoshis: 1, lockingScript: p2pkh(3) }],
  })

  test('are won by the first to come, until a proof decides', () => {
    const index = open(chain)
    index.transactions(coin, one, built, other)
    expect(index.index.status(other.txid)).toMatchObject({ isInactive: true, mined: undefined })
    expect(index.index.reasonAgainst(other.txid)).toEqual({ txid: one.txid, tier: 'unseen' })
    index.index.takeFlips()
    index.prove(other, BLOCK)
    expect(index.index.takeFlips()).toEqual({
      added: [],
      restored: [other.txid],
      deactivated: [one.txid, built.txid],
      lowered: [],
      blocks: [],
    })
    expect(lastChange(index)).toBe('*')
    expect(index.index.reasonAgainst(built.txid)).toEqual({ txid: other.txid, tier: 'proven' })
    index.register(register.verdict(BLOCK), false)
    expect(index.index.takeFlips()).toMatchObject({
      restored: [one.txid, built.txid],
      deactivated: [other.txid],
    })
  })

  test('are won by a proof over what was seen first, and by the lower block of two', () => {
    const index = open(chain)
    index.transactions(coin, one, other)
    index.register(register.sighting(one.txid), 'seen')
    index.prove(other, BLOCK)
    index.prove(one, { height: BLOCK.height + 1, root: 'cd'.repeat(32) })
    expect(index.index.status(other.txid)).toMatchObject({ isInactive: false })
  })

  test('over a node are left by a mint that turns out to spend another node, too', () => {
    const index = open(chain)
    const b = chain.mint('b')
    const root = chain.node('')
    const ba = chain.mint('ba')
    const two = chain.mint('c', { from: root, funding: [{ transaction: ba, vout: 1 }] })
    const rival = chain.mint('c', { from: root })
    index.transactions(chain.genesis, b, two, rival)
    expect(index.index.status(rival.txid)).toMatchObject({ isInactive: true })
    index.transactions(ba)
    expect(index.index.status(rival.txid)).toMatchObject({ isInactive: false })
  })

  test('over the genesis are between mints, as over any node, before its transaction is stored', () => {
    const chain = new FakeChain()
    const index = open(chain)
    const inputs = [{ transaction: chain.genesis, vout: 0 }]
    const burn = chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript: p2pkh(1) }] })
    index.transactions(burn, chain.mint('a'))
    expect(index.sql.all('select name, active from name')).toEqual([{ name: 'a', active: 1 }])
    index.transactions(chain.genesis)
    expect(index.sql.all('select name, active from name')).toEqual([{ name: 'a', active: 1 }])
  })

  test('over what turns out to be a node are left by all but mints', () => {
    const chain = new FakeChain()
    const index = open(chain)
    const [a, ab] = chain.mintAll('ab') as [FakeTransaction, FakeTransaction]
    const burns = [1, 2].map((satoshis) =>
      chain.spend({
        inputs: [{ transaction: ab, vout: 1 }],
        outputs: [{ satoshis, lockingScript: p2pkh(1) }],
      }),
    )
    const inactive = () => burns.map(({ txid }) => index.index.status(txid)?.isInactive)
    index.transactions(chain.genesis, ab, ...burns)
    expect(inactive()).toEqual([false, true])
    index.transactions(a)
    expect(inactive()).toEqual([false, false])
  })

  test('give what counts again a new score, and what is spent no more', () => {
    const index = open(chain)
    const scoreOf = ({ txid }: FakeTransaction): number =>
      index.sql.get(
        'select score from admission where tid = (select id from tx where txid = ?)',
        Buffer.from(txid, 'hex'),
      )?.score
    index.transactions(coin, one, built)
    const before = scoreOf(one)
    index.register(register.sighting(built.txid), 'rejected')
    expect(scoreOf(one)).toBeGreaterThan(scoreOf(built))
    expect(scoreOf(one)).toBeGreaterThan(before)
    index.register(register.sighting(built.txid), 'seen')
    expect(scoreOf(built)).toBeGreaterThan(scoreOf(one))
  })

  test('are returned to how they were with a savepoint', () => {
    const index = open(chain)
    index.transactions(coin, one)
    index.index.takeFlips()
    index.index.takeAdmitted()
    const before = canonicalRows(index.sql)
    index.sql.exec('begin')
    index.sql.exec('savepoint trial')
    const mark = index.index.mark()
    index.index.apply(index.place([transactionFact(built), transactionFact(other)]))
    index.sql.exec('rollback to trial')
    index.index.restore(mark)
    index.index.flush()
    index.sql.exec('commit')
    expect(canonicalRows(index.sql)).toEqual(before)
    expect(index.index.takeFlips()).toEqual({
      added: [],
      restored: [],
      deactivated: [],
      lowered: [],
      blocks: [],
    })
    expect(index.index.takeAdmitted()).toEqual([])
  })
})

/** What stands in the table of changes for the last commit. */
function lastChange({ sql }: Pick<ReturnType<typeof open>, 'sql'>): unknown {
  const { keys } = sql.get('select keys from changes order by id desc limit 1') ?? {}
  return keys === '*' ? keys : JSON.parse(keys)
}

test('what answers depend on is noted with what changes them', () => {
  const chain = new FakeChain()
  const index = open(chain)
  index.transactions(chain.genesis)
  const minted = chain.mint('a')
  index.transactions(minted)
  expect(lastChange(index)).toEqual(
    expect.arrayContaining([
      dependency.name('a'),
      dependency.names,
      dependency.proof(minted.txid),
      dependency.spend({ txid: chain.genesis.txid, vout: 0 }),
    ]),
  )
  index.prove(minted, BLOCK)
  expect(lastChange(index)).toEqual(
    expect.arrayContaining([dependency.proof(minted.txid), dependency.tier(minted.txid), dependency.names]),
  )
})

test('an output that the policy refused is held by nothing, nor is what it would have been moved to', () => {
  const chain = new FakeChain()
  const index = open(chain)
  const refused = chain.inscribe(text('refused'))
  const moved = chain.spend({
    inputs: [{ transaction: refused, vout: 0 }],
    outputs: [{ satoshis: 1, lockingScript: p2pkh(1) }],
  })
  index.apply(transactionFact(refused, { refused: [0], others: [{ topic: 'tm_more', vout: 0 }] }))
  index.transactions(moved)
  expect(index.sql.all('select topic, vout from admission')).toEqual([{ topic: 'tm_more', vout: 0 }])
})
