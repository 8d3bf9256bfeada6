import { parseOutpoint } from '../../backend/src/protocol/outpoint.js'
import { madeUpMint } from '../../src/mining/made-up-mint.js'
import { HttpMineIndex, type LiveNode, type MineIndex } from '../../src/mining/mine-index.js'
import { type MineNameOptions, type MiningEvent, mineName } from '../../src/mining/mine-name.js'
import { beefOf, FakeChain, p2pkh } from '../support/fake-chain.js'
import { sdkTransaction } from '../support/sdk-transaction.js'
import { type TestServer, treeOf, useServers } from '../support/test-server.js'

const servers = useServers()

/** A server with the root of a tree and these names. */
async function tree(...names: string[]) {
  const chain = new FakeChain({ difficulty: 8 })
  const server = await servers.start(treeOf(chain.deployment))
  const submit = async (...each: Parameters<typeof beefOf>[0][]): Promise<void> => {
    for (const transaction of each) expect((await server.submit(beefOf(transaction))).status).toBe(200)
  }
  await submit(chain.genesis, ...names.flatMap((name) => chain.mintAll(name)))
  return { chain, server, submit, index: new HttpMineIndex(server.url) }
}

/** Mines in this thread, with made-up money, and keeps what happens. */
function miner({ chain, index }: { chain: FakeChain; index: MineIndex }) {
  const events: MiningEvent[] = []
  return {
    events,
    happened: () =>
      events.filter(({ kind }) => kind !== 'searching').map(({ kind, name }) => `${kind} ${name}`),
    mine: (name: string, options: Partial<MineNameOptions> = {}) =>
      mineName({
        name,
        deployment: chain.deployment,
        index,
        pay: madeUpMint,
        ownerLock: async () => p2pkh(7),
        workers: 0,
        onEvent: (event) => events.push(event),
        ...options,
      }),
  }
}

const namesOf = async (server: TestServer): Promise<string[]> => {
  const { names } = (await server.ask('/svc/names')).json as { names: { name: string }[] }
  return names.map(({ name }) => name)
}

test('what is missing of a name is mined, a character at a time', async () => {
  const { chain, server, index } = await tree('ab')
  const { mine, happened } = miner({ chain, index })
  const minted = await mine('abcd', { ownerLock: async (name) => p2pkh(name.length) })
  expect(minted.map(({ mint }) => mint.name)).toEqual(['abc', 'abcd'])
  expect(happened()).toEqual(['started abc', 'minted abc', 'started abcd', 'minted abcd'])
  const { json } = await server.ask('/svc/names/abcd')
  const txid = minted[1]?.transaction.id('hex')
  expect(json).toMatchObject({ origin: `${txid}_2`, tip: { outpoint: `${txid}_2`, spent: false } })
  expect(minted.map(({ mint }) => mint.ownerLock)).toEqual([p2pkh(3), p2pkh(4)])
})

test('a name is mined on where it was left', async () => {
  const { chain, server, index } = await tree()
  const stop = new AbortController()
  const { mine, events } = miner({ chain, index })
  const stopped = mine('xyz', {
    signal: stop.signal,
    onEvent: (event) => {
      events.push(event)
      if (event.kind === 'minted' && event.name === 'xy') stop.abort(new Error('enough'))
    },
  })
  await expect(stopped).rejects.toThrow('enough')
  expect(await namesOf(server)).toEqual(['x', 'xy'])
  expect((await mine('xyz')).map(({ mint }) => mint.name)).toEqual(['xyz'])
})

test('a search is given up when the node moves, and begun anew from where it went', async () => {
  const chain = new FakeChain({ difficulty: 60 })
  const moved = { txid: 'ab'.repeat(32), vout: 0 }
  const genesis = sdkTransaction(chain.genesis)
  const seen: LiveNode[] = []
  let looks = 0
  const index: MineIndex = {
    // A solution is not found in this life; others move the node at the third look.
    liveNode: async () => ({ domain: '', outpoint: ++looks < 3 ? chain.deployment.genesis : moved }),
    async nodeTransaction(node) {
      seen.push(node)
      if (seen.length > 1) throw new Error('the test is over')
      return genesis
    },
    submit: () => Promise.reject(new Error('there is nothing to submit')),
  }
  const { mine, happened } = miner({ chain, index })
  await expect(mine('q', { watchEvery: 5 })).rejects.toThrow('the test is over')
  expect(seen.map(({ outpoint }) => outpoint)).toEqual([chain.deployment.genesis, moved])
  expect(happened()).toEqual(['started q', 'moved q', 'started q'])
})

describe('a rival who moves the node', () => {
  test.each<[string, 'before it is paid for' | 'after it is paid for']>([
    ['while the solution is found', 'before it is paid for'],
    ['while the mint is on its way', 'after it is paid for'],
  ])('%s makes it worthless, and the miner goes on', async (_, when) => {
    const { chain, server, submit, index } = await tree()
    const paid: string[] = []
    const submitted: string[] = []
    const rival = chain.mint('r')
    let looks = 0
    const watched: MineIndex = {
      async liveNode(name) {
        if (when === 'before it is paid for' && ++looks === 2) await submit(rival)
        return await index.liveNode(name)
      },
      nodeTransaction: (node) => index.nodeTransaction(node),
      async submit(mint) {
        submitted.push(mint.txid)
        await index.submit(mint)
      },
    }
    const { mine, happened } = miner({ chain, index: watched })
    const minted = await mine('q', {
      async pay(draft) {
        const mint = await madeUpMint(draft)
        if (when === 'after it is paid for' && paid.length === 0) await submit(rival)
        paid.push(mint.transaction.id('hex'))
        return mint
      },
    })
    expect(happened()).toEqual(['started q', 'moved q', 'started q', 'minted q'])
    expect(await namesOf(server)).toEqual(['q', 'r'])
    // Of a solution for a seed that is no longer, nothing is paid and nothing sent where that is known.
    expect(paid).toHaveLength(when === 'before it is paid for' ? 1 : 2)
    expect(submitted).toEqual(paid)
    expect(minted[0]?.transaction.inputs[0]?.sourceTransaction?.id('hex')).toBe(rival.txid)
  })

  test('and takes the very name leaves nothing to mine', async () => {
    const { chain, submit, index } = await tree()
    const rival = chain.mint('q')
    const { mine, happened } = miner({ chain, index })
    const mining = mine('q', {
      async pay(draft) {
        await submit(rival)
        return await madeUpMint(draft)
      },
    })
    await expect(mining).rejects.toMatchObject({ code: 'TAKEN' })
    expect(happened()).toEqual(['started q', 'moved q'])
  })

  test('is told of by a wallet before the index knows', async () => {
    const { chain, submit, index } = await tree()
    const rival = chain.mint('r')
    const { mine, happened } = miner({ chain, index })
    let asked = 0
    await mine('q', {
      async pay(draft) {
        if (++asked > 1) return await madeUpMint(draft)
        await submit(rival)
        throw new Error('a double spend')
      },
    })
    expect(happened()).toEqual(['started q', 'moved q', 'started q', 'minted q'])
  })
})

test('two miners at one node get one name each, and nothing is counted twice', async () => {
  const { chain, server, index } = await tree('a')
  const [x, y] = [miner({ chain, index }), miner({ chain, index })] as const
  const minted = (await Promise.all([x.mine('axx'), y.mine('ayy')])).map((mints) =>
    mints.map(({ mint }) => mint.name),
  )
  expect(minted).toEqual([
    ['ax', 'axx'],
    ['ay', 'ayy'],
  ])
  expect(await namesOf(server)).toEqual(['a', 'ax', 'axx', 'ay', 'ayy'])
  const told = [...x.events, ...y.events].filter(({ kind }) => kind === 'minted').map(({ name }) => name)
  expect(told.sort()).toEqual(['ax', 'axx', 'ay', 'ayy'])
})

test('of two miners of one name, one gets it', async () => {
  const { chain, server, index } = await tree()
  const [x, y] = [miner({ chain, index }), miner({ chain, index })] as const
  const results = await Promise.allSettled([x.mine('q'), y.mine('q')])
  expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  expect(results.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'TAKEN' } })
  expect(await namesOf(server)).toEqual(['q'])
})

test('what payers throw for other reasons ends the mining', async () => {
  const { chain, index } = await tree()
  const { mine } = miner({ chain, index })
  const pay = (): Promise<never> => Promise.reject(new Error('the purse is empty'))
  await expect(mine('q', { pay })).rejects.toThrow('the purse is empty')
})

describe('what cannot be mined', () => {
  test.each(['', 'A', 'a b', 'ä', 'a'.repeat(256), 'a.b'])('%j', async (name) => {
    const { mine } = miner({ chain: new FakeChain(), index: new HttpMineIndex('http://127.0.0.1:9') })
    await expect(mine(name)).rejects.toMatchObject({ code: 'BAD_NAME' })
  })

  test('a name that is taken', async () => {
    const { chain, index } = await tree('q')
    await expect(miner({ chain, index }).mine('q')).rejects.toMatchObject({ code: 'TAKEN' })
  })

  test('in a tree that is not there', async () => {
    const chain = new FakeChain()
    const { url } = await servers.start(treeOf(chain.deployment))
    const mining = miner({ chain, index: new HttpMineIndex(url) }).mine('q')
    await expect(mining).rejects.toMatchObject({ code: 'BAD_INDEX' })
  })

  const lying = (lie: Partial<MineIndex>): Promise<unknown> => {
    const chain = new FakeChain()
    const index: MineIndex = {
      liveNode: async () => ({ domain: '', outpoint: chain.deployment.genesis }),
      nodeTransaction: async () => sdkTransaction(chain.genesis),
      submit: async () => {},
      ...lie,
    }
    return miner({ chain, index }).mine('ab')
  }
  const outpoint = parseOutpoint(`${'ab'.repeat(32)}_0`)

  test.each<[string, Partial<MineIndex>, string]>([
    ['a prefix of another name', { liveNode: async () => ({ domain: 'b', outpoint }) }, 'BAD_INDEX'],
    ['the name itself', { liveNode: async () => ({ domain: 'ab', outpoint }) }, 'BAD_INDEX'],
    [
      'a coin that is no node',
      {
        liveNode: async () => ({ domain: '', outpoint: { ...outpoint, vout: 1 } }),
        nodeTransaction: async () => sdkTransaction(new FakeChain().genesis),
      },
      'NOT_A_NODE',
    ],
    [
      'an output that is not there',
      { liveNode: async () => ({ domain: '', outpoint: { ...outpoint, vout: 9 } }) },
      'BAD_INDEX',
    ],
    ['another root', { liveNode: async () => ({ domain: '', outpoint }) }, 'OTHER_TREE'],
  ])('where an index says that the node is %s', async (_, lie, code) => {
    await expect(lying(lie)).rejects.toMatchObject({ code })
  })
})
