import type { Engine, LookupService } from '@bsv/overlay'
import type { Knex } from 'knex'
import { FACT } from '../../../backend/src/facts/log.js'
import { START } from '../../../backend/src/facts/shared-log.js'
import { openHostLog } from '../../../backend/src/host/host-database.js'
import { concatBytes, toHex } from '../../../backend/src/protocol/bytes.js'
import { NamesTopicManager, storesOf } from '../../../src/plugin/index.js'
import { IS_NIGHTLY } from '../nightly.js'
import { type FakeTransaction, type MintOverrides, OPEN_LOCK, p2pkh } from '../protocol/fake-chain.js'
import { eventually, until } from '../server/waiting.js'
import { ENGINE_VERSIONS, type EngineVersion } from './engines.js'
import {
  refusingBroadcaster,
  type SentNode,
  startHidingPeer,
  startHostilePeer,
  syncFrom,
} from './hostile-peer.js'
import OverlayExpress from './overlay-express.js'
import { type HostDatabase, type HostOptions, type PluginHost, startPluginHost } from './plugin-host.js'
import { ToolboxWallet } from './toolbox-wallet.js'

const LETTERS = [...'abcde']

/** The rows of the log in the database of a host, in order: of which kind each is, and its key. */
async function factsOf({ host }: PluginHost): Promise<string[]> {
  const log = await openHostLog(host.mongoDb ?? (host.knex as Knex))
  const rows = await log.after(START, { limit: 10_000, maxBytes: Number.POSITIVE_INFINITY })
  return rows.map(({ kind, key }) => `${kind} ${toHex(key)}`)
}

/**
 * What holds for the plugin in every host, whatever its engine and its databases (`docs/plugin.md`).
 * Everything is asked and said over HTTP.
 */
export function describePluginContract(
  open: () => Promise<HostDatabase>,
  {
    bans = false,
    engines = ENGINE_VERSIONS,
  }: {
    /** Whether its hosts have MongoDB, where a ban list is kept. */
    bans?: boolean
    /** By default, all. */
    engines?: readonly EngineVersion[]
  } = {},
): void {
  describe.each([...engines])('engine %s', (engine) => {
    // By day, the real engine shows what hangs on none.
    const isWhole = IS_NIGHTLY || engine === '0.4.6'
    const forms = isWhole ? ['unmined', 'mined'] : [engine === '0.5.4' ? 'mined' : 'unmined']
    const testOfAny = isWhole ? test : test.skip
    let wallet: ToolboxWallet
    let database: HostDatabase
    let running: PluginHost | undefined

    beforeEach(async () => {
      wallet = new ToolboxWallet()
      database = await open()
    })
    afterEach(async () => {
      await running?.stop()
    })

    async function start(options: Partial<HostOptions> = {}): Promise<PluginHost> {
      const { deployment } = wallet.chain
      running = await startPluginHost({ deployment, engine, database, ...options })
      return running
    }

    async function restart(host: PluginHost, options: Partial<HostOptions> = {}): Promise<PluginHost> {
      await host.stop()
      return await start(options)
    }

    async function submitAll(host: PluginHost, transactions: FakeTransaction[]): Promise<void> {
      for (const each of transactions) await host.submit(wallet.beef(each))
    }

    async function expectNames(host: PluginHost, mints: FakeTransaction[]): Promise<void> {
      const found: string[][] = []
      for (const [at] of mints.entries()) found.push(await host.found('ls_names', { name: LETTERS[at] }))
      expect(found).toEqual(mints.map((mint) => [mint.outpoint(2)]))
      const origins = mints.map((mint) => mint.outpoint(2))
      expect((await host.found('ls_names', { origins })).sort()).toEqual(origins.sort())
      expect(await host.found('ls_names', { node: '' })).toEqual([mints.at(-1)?.outpoint(0)])
    }

    describe.each(forms)('mints, %s', (form) => {
      const mined = form === 'mined'
      let mints: FakeTransaction[]
      beforeEach(() => {
        mints = LETTERS.map((name) => wallet.mint(name, { mined }))
      })

      test('each sent as soon as the one before is answered, and one again, before anything is stored', async () => {
        const host = await start()
        host.writes.hold()
        await submitAll(host, [wallet.chain.genesis, ...mints, ...mints.slice(0, 1)])
        await host.stored()
        await expectNames(host, mints)
        await expectNames(await restart(host), mints)
      })

      test('all before their parents, with a restart in between', async () => {
        const host = await start()
        const [first, ...others] = mints
        await submitAll(host, others.toReversed())
        await host.stored()
        // One that is not mined comes with everything down to the genesis.
        const last = others.at(-1)?.outpoint(2)
        expect(await host.found('ls_names', { name: LETTERS.at(-1) })).toEqual(mined ? [] : [last])
        const again = await restart(host)
        if (first !== undefined) await submitAll(again, [first, wallet.chain.genesis])
        await again.stored()
        await expectNames(again, mints)
      })

      test('all at once', async () => {
        const host = await start()
        await Promise.all([...mints, wallet.chain.genesis].map((each) => host.submit(wallet.beef(each))))
        await host.stored()
        await expectNames(host, mints)
      })
    })

    testOfAny('mints of any form that blocks hold are followed, sent last first', async () => {
      const empty = { satoshis: 0, lockingScript: new Uint8Array() }
      const forms: [string, MintOverrides][] = [
        ['a', { trailing: new Array(9998).fill(empty) }],
        ['b', { character: 'b\0' }],
        ['c', { unlockingScript: (right) => concatBytes(Uint8Array.of(0x57), right) }],
        ['d', {}],
      ]
      let from = wallet.chain.node('')
      const mints: FakeTransaction[] = []
      for (const [name, overrides] of forms) {
        const mint = wallet.mint(name, { from, mined: true, ...overrides })
        mints.push(mint)
        const [restated] = mint.transaction.outputs
        if (restated === undefined) throw new Error('a mint without outputs')
        const { satoshis, lockingScript } = restated
        from = { satoshis, lockingScript, outpoint: { txid: mint.txid, vout: 0 } }
      }
      const host = await start()
      await submitAll(host, [...mints, wallet.chain.genesis].toReversed())
      await host.stored()
      const found: string[][] = []
      for (const [name] of forms) found.push(await host.found('ls_names', { name }))
      const [a, , c, d] = mints.map((mint) => [mint.outpoint(2)])
      expect(found).toEqual([a, [], c, d])
      expect(await host.found('ls_names', { node: '' })).toEqual([mints.at(-1)?.outpoint(0)])
    })

    describe.each(forms)('transfers, %s', (form) => {
      const mined = form === 'mined'
      let mint: FakeTransaction
      let moves: FakeTransaction[]
      beforeEach(() => {
        mint = wallet.mint('a', { mined })
        const once = wallet.transfer(mint, 2, { mined })
        moves = [once, wallet.transfer(once, 0, { mined })]
      })

      test('are followed, each sent as soon as the one before is answered', async () => {
        const host = await start()
        host.writes.hold()
        await submitAll(host, [wallet.chain.genesis, mint, ...moves])
        await host.stored()
        expect(await host.found('ls_names', { name: 'a' })).toEqual([moves[1]?.outpoint(0)])
        const query = { outpoint: mint.outpoint(2), seq: 1 }
        expect(await host.found('ls_ordinals', query)).toEqual([moves[0]?.outpoint(0)])
      })

      test('are followed if they come before the mint, last first', async () => {
        const host = await start()
        await submitAll(host, [...moves.toReversed(), mint])
        const again = await restart(host)
        await submitAll(again, [wallet.chain.genesis])
        await again.stored()
        expect(await again.found('ls_names', { name: 'a' })).toEqual([moves[1]?.outpoint(0)])
      })
    })

    test('a mined transfer behind an unknown coin is no burn, and is placed once the coin is known', async () => {
      const host = await start()
      const mint = wallet.mint('a', { mined: true })
      const coin = wallet.coin()
      const moved = wallet.transfer(mint, 2, { mined: true, before: [coin] })
      await submitAll(host, [wallet.chain.genesis, mint])
      await host.stored()
      expect((await host.submit(wallet.beef(moved))).tm_ordinals).toEqual([1])
      await host.stored()
      if ('txid' in coin) throw new Error('a wallet knows its coins')
      // What pays for it comes out of the same transaction.
      await host.submit(wallet.beef(wallet.inscribe('brings the coin', { ...coin, vout: 1 })))
      await host.stored()
      expect(await host.found('ls_names', { name: 'a' })).toEqual([moved.outpoint(1)])
    })

    testOfAny('a mint from a forged node is in no answer, and takes no place in the tree', async () => {
      const host = await start()
      const node = wallet.chain.node('')
      const forged = wallet.chain.spend({ inputs: [], outputs: [node] })
      const from = { ...node, outpoint: { txid: forged.txid, vout: 0 } }
      const mint = wallet.mint('a', { from, mined: true })
      const genuine = wallet.mint('b', { mined: true })
      await submitAll(host, [mint, genuine, wallet.chain.genesis])
      await host.stored()
      expect(await host.found('ls_names', { name: 'a' })).toEqual([])
      expect(await host.found('ls_names', { origins: [mint.outpoint(2)] })).toEqual([])
      expect(await host.found('ls_names', { name: 'b' })).toEqual([genuine.outpoint(2)])
    })

    describe('of two mints of one name', () => {
      let first: FakeTransaction
      let rival: FakeTransaction
      beforeEach(() => {
        const { chain } = wallet
        const from = chain.node('')
        const change = { satoshis: 900, lockingScript: OPEN_LOCK }
        first = wallet.mint('a')
        // Minted from the same node, and with an output that anybody can spend.
        rival = wallet.mint('a', { from, ownerLock: p2pkh(9), trailing: [change] })
      })

      test('the first counts, and the other as soon as it comes with a proof', async () => {
        const host = await start()
        await submitAll(host, [wallet.chain.genesis, first])
        await host.stored()
        wallet.mine(rival)
        await submitAll(host, [rival])
        await host.stored()
        expect(await host.found('ls_names', { name: 'a' })).toEqual([rival.outpoint(2)])
      })

      test('a known one counts once its proof arrives at /arc-ingest', async () => {
        const host = await start({ listens: true })
        // An engine answers before it stores: of what it stores at once, either may come first.
        for (const part of [[wallet.chain.genesis, first], [rival]]) {
          await submitAll(host, part)
          await host.stored()
        }
        expect(await host.found('ls_names', { name: 'a' })).toEqual([first.outpoint(2)])
        expect(await host.post('/arc-ingest', wallet.proof(rival))).toBe(200)
        expect(await host.found('ls_names', { name: 'a' })).toEqual([rival.outpoint(2)])
      })

      describe('whose proofs the host’s chain tracker confirms', () => {
        const chainTracker = { isValidRootForHeight: async () => true, currentHeight: async () => 1 }
        const listening: Partial<HostOptions> = {
          listens: true,
          configure: (host) => host.configureChainTracker(chainTracker),
        }

        test('one counts whose proof arrives before the host has stored it', async () => {
          const host = await start(listening)
          await submitAll(host, [wallet.chain.genesis, first])
          await host.stored()
          host.writes.hold()
          await submitAll(host, [rival])
          expect(await host.post('/arc-ingest', wallet.proof(rival))).toBe(400)
          await host.stored()
          await eventually(async () =>
            expect(await host.found('ls_names', { name: 'a' })).toEqual([rival.outpoint(2)]),
          )
        })

        test('one counts that the host knows as the parent of another alone', async () => {
          const host = await start(listening)
          await submitAll(host, [wallet.chain.genesis, first])
          await host.stored()
          await submitAll(host, [wallet.inscribe('a child', { transaction: rival, vout: 3 })])
          await host.stored()
          expect(await host.found('ls_names', { name: 'a' })).toEqual([first.outpoint(2)])
          expect(await host.post('/arc-ingest', wallet.proof(rival))).toBe(400)
          // The engine answers with what it has itself.
          await submitAll(host, [rival])
          await host.stored()
          expect(await host.found('ls_names', { name: 'a' })).toEqual([rival.outpoint(2)])
        })
      })

      test('a known one counts once it is sent again with its proof', async () => {
        const host = await start({ listens: true })
        await submitAll(host, [wallet.chain.genesis, first, rival])
        await host.stored()
        wallet.mine(rival)
        await submitAll(host, [rival])
        await host.stored()
        expect(await host.found('ls_names', { name: 'a' })).toEqual([rival.outpoint(2)])
      })

      test('a proof that the chain does not have changes nothing', async () => {
        const host = await start({ listens: true })
        // Of two that are on their way to the log, either may come first.
        await submitAll(host, [wallet.chain.genesis, first])
        await host.stored()
        await submitAll(host, [rival])
        await host.stored()
        host.host.chainTracker = { isValidRootForHeight: async () => false, currentHeight: async () => 1 }
        const again = await restart(host, {
          listens: true,
          configure: (each) => each.configureChainTracker(host.host.chainTracker),
        })
        expect(await again.post('/arc-ingest', wallet.proof(rival))).toBe(200)
        expect(await again.found('ls_names', { name: 'a' })).toEqual([first.outpoint(2)])
      })

      test('without anything that passes proofs on, a child that brings the proof is enough', async () => {
        const host = await start()
        await submitAll(host, [wallet.chain.genesis, first, rival])
        await host.stored()
        wallet.mine(rival)
        const spends = { transaction: rival, vout: 3 }
        await submitAll(host, [wallet.inscribe('brings the proof', spends)])
        await host.stored()
        expect(await host.found('ls_names', { name: 'a' })).toEqual([rival.outpoint(2)])
      })
    })

    test('what the operator evicts is in no answer, is not admitted again, and stays away after a restart', async () => {
      const host = await start()
      const mint = wallet.mint('a', { mined: true })
      await submitAll(host, [wallet.chain.genesis, mint])
      await host.stored()
      const evicted = { txid: mint.txid, outputIndex: 2 }
      expect(await host.post('/admin/evictOutpoint', evicted)).toBe(200)
      // A name that is blocked is not given to the next miner.
      await expect(host.found('ls_names', { name: 'a' })).rejects.toThrow('has blocked')
      const again = await restart(host)
      await submitAll(again, [mint])
      await again.stored()
      await expect(again.found('ls_names', { name: 'a' })).rejects.toThrow('has blocked')
    })

    test('what is evicted and not mined was rejected by the network, until a proof says otherwise', async () => {
      const host = await start()
      const mint = wallet.mint('a')
      for (const each of [wallet.chain.genesis, mint]) {
        await submitAll(host, [each])
        await host.stored()
      }
      expect(await host.post('/admin/evictOutpoint', { txid: mint.txid, outputIndex: 2 })).toBe(200)
      expect(await host.found('ls_names', { name: 'a' })).toEqual([])
      expect(await host.found('ls_names', { mine: 'a' })).toEqual([wallet.chain.genesis.outpoint(0)])
      const again = await restart(host)
      expect(await again.found('ls_names', { name: 'a' })).toEqual([])
      wallet.mine(mint)
      const child = wallet.transfer(mint, 2)
      await again.submit(wallet.beef(child), ['tm_ordinals'])
      await again.stored()
      expect(await again.found('ls_names', { name: 'a' })).toEqual([child.outpoint(0)])
    })

    const testOfBans = bans && engine.startsWith('2.') ? test : test.skip
    testOfBans('what the operator bans comes back once it is unbanned', async () => {
      const host = await start({ listens: true })
      const mint = wallet.mint('a', { mined: true })
      await submitAll(host, [wallet.chain.genesis, mint])
      await host.stored()
      const ban = { type: 'outpoint', value: `${mint.txid}.2` }
      expect(await host.post('/admin/ban', ban)).toBe(200)
      await expect(host.found('ls_names', { name: 'a' })).rejects.toThrow('has blocked')
      expect(await host.post('/admin/unban', ban)).toBe(200)
      expect(await host.found('ls_names', { name: 'a' })).toEqual([mint.outpoint(2)])
    })

    test('what nobody has verified, and what a broadcaster refuses, changes no answer and adds no fact', async () => {
      const forged = new Set<string>()
      const chainTracker = {
        isValidRootForHeight: async (root: string) => !forged.has(root),
        currentHeight: async () => 1,
      }
      const configure = (each: OverlayExpress) => each.configureChainTracker(chainTracker)
      const host = await start({ listens: true, configure })
      const from = wallet.chain.node('')
      const mint = wallet.mint('a', { mined: true, ownerLock: p2pkh(9) })
      const note = wallet.inscribe('a note')
      await submitAll(host, [wallet.chain.genesis, mint, note])
      await host.stored()
      // Nobody has signed it, a block that is none holds it, it has a push that is not minimal.
      const unsigned = wallet.transfer(mint, 2)
      const rival = wallet.mint('a', { from, ownerLock: p2pkh(8) })
      const loose = wallet.mint('ab', { unlockingScript: (right) => concatBytes(Uint8Array.of(0x57), right) })
      const refused = [wallet.transfer(note, 0), wallet.mint('b'), wallet.inscribe('refused')]
      forged.add(rival.txid)
      const wrong = [unsigned, rival, loose]
      const expectAsBefore = async (at: PluginHost): Promise<void> => {
        expect(await at.found('ls_names', { name: 'a' })).toEqual([mint.outpoint(2)])
        expect(await at.found('ls_names', { node: 'a' })).toEqual([mint.outpoint(1)])
        for (const name of ['ab', 'b']) expect(await at.found('ls_names', { name })).toEqual([])
        const query = { outpoint: note.outpoint(0), seq: -1 }
        expect(await at.found('ls_ordinals', query)).toEqual([note.outpoint(0)])
        const { graph } = storesOf(at.host.mongoDb ?? at.host.knex)
        for (const { txid } of [...wrong, ...refused])
          expect([txid, await graph.transactions.get(txid)]).toEqual([txid, undefined])
      }
      await expectAsBefore(host)
      const log = await factsOf(host)

      const sent = [...wallet.ancestry([...wrong, ...refused])].map((transaction) => ({
        transaction,
        proof:
          wallet.isMined(transaction) || transaction === rival
            ? wallet.proof(transaction).merklePath
            : undefined,
      }))
      const offered = wrong.flatMap(({ txid }) => [0, 1, 2].map((outputIndex) => ({ txid, outputIndex })))
      const peer = await startHostilePeer(offered, sent)
      await syncFrom(host.host.engine as Engine, peer.url)
      expect(peer.asked).toEqual(expect.arrayContaining(wrong.map(({ txid }) => txid)))
      await peer.close()
      wallet.mine(rival)
      for (const each of [unsigned, rival]) await expect(host.submit(wallet.beef(each))).rejects.toThrow()
      expect(await host.post('/arc-ingest', wallet.proof(loose))).not.toBe(401)
      Object.assign(host.host.engine as Engine, {
        broadcaster: refusingBroadcaster,
        throwOnBroadcastFailure: true,
      })
      for (const each of refused)
        await expect(host.submit(wallet.beef(each))).rejects.toThrow('the network refuses it')
      await host.stored()
      await expectAsBefore(host)
      expect(await factsOf(host)).toEqual(log)

      // Whoever waits for the engine's word has been looked at once this has come, of which no hook tells.
      const again = await restart(host, { listens: true, configure })
      const ended = wallet.inscribe('ends at once')
      const burn = wallet.burn(ended, 0)
      again.writes.hold()
      await submitAll(again, [ended, burn])
      await again.stored()
      const query = { outpoint: ended.outpoint(0) }
      await eventually(async () => {
        const { graph } = storesOf(again.host.mongoDb ?? again.host.knex)
        expect((await graph.transactions.get(burn.txid))?.txid).toBe(burn.txid)
        expect(await again.found('ls_ordinals', query)).toEqual([ended.outpoint(0)])
      })
      await expectAsBefore(again)
      const later = [...wallet.ancestry([ended, burn])].map(({ txid }) => `${FACT.transaction} ${txid}`)
      const added = (await factsOf(again)).slice(log.length)
      expect(later).toEqual(
        expect.arrayContaining(added.filter((fact) => fact.startsWith(`${FACT.transaction} `))),
      )
    })

    test('what a peer hides behind a proven transaction is verified here, with the tracker of the listener', async () => {
      const forged = new Set<string>()
      const isValidRootForHeight = async (root: string): Promise<boolean> => !forged.has(root)
      const chainTracker = { isValidRootForHeight, currentHeight: async () => 1 }
      const configure = (each: OverlayExpress) => each.configureChainTracker(chainTracker)
      const host = await start({ listens: true, configure })
      const mint = wallet.mint('a', { mined: true, ownerLock: p2pkh(9) })
      await submitAll(host, [wallet.chain.genesis, mint])
      await host.stored()
      const [theft, note] = [wallet.transfer(mint, 2), wallet.inscribe('true')]
      forged.add(theft.txid)
      const engine = host.host.engine as Engine
      const [root, forgery] = [note, theft].map((transaction) => {
        return { transaction, proof: wallet.proof(transaction).merklePath }
      }) as [Required<SentNode>, Required<SentNode>]
      const applied = { txid: note.txid, topic: 'tm_ordinals' }
      const peer = await startHidingPeer(root, forgery, async () => {
        await until(() => engine.storage.doesAppliedTransactionExist(applied), 'the root is stored')
      })
      await syncFrom(engine, peer.url, ['tm_ordinals'])
      await peer.close()
      const query = { outpoint: note.outpoint(0) }
      await eventually(async () => {
        expect(await host.found('ls_ordinals', query)).toEqual([note.outpoint(0)])
      })
      expect(await host.found('ls_names', { name: 'a' })).toEqual([mint.outpoint(2)])
    })

    test('what is spent before the engine has stored it is kept, even if it looks for it again', async () => {
      const host = await start()
      const { genesis } = wallet.chain
      const note = wallet.inscribe('ends at once')
      const [mint, burn] = [wallet.mint('a'), wallet.burn(note, 0)]
      host.writes.hold()
      await host.submit(wallet.beef(genesis), ['tm_names'])
      await host.submit(wallet.beef(note), ['tm_ordinals'])
      for (const each of [`${genesis.txid} 0 tm_names`, `${note.txid} 0 tm_ordinals`])
        await until(() => host.writes.waiting.has(each), each)
      await submitAll(host, [mint, burn])
      await host.stored()
      const storage = (host.host.engine as Engine).storage
      expect(await storage.findOutput(genesis.txid, 0, 'tm_names')).toMatchObject({ txid: genesis.txid })
      expect(await host.found('ls_ordinals', { outpoint: note.outpoint(0) })).toEqual([note.outpoint(0)])
      await eventually(async () =>
        expect(await host.found('ls_names', { name: 'a' })).toEqual([mint.outpoint(2)]),
      )
    })

    test('what the engine had stored when it was killed, before its hooks, is caught up with', async () => {
      const host = await start()
      const note = wallet.inscribe('not forgotten')
      const [a, ab] = [wallet.mint('a', { mined: true }), wallet.mint('ab', { mined: true })]
      host.writes.cutAfterOutputs()
      await host.submit(wallet.beef(wallet.chain.genesis), ['tm_names'])
      await host.submit(wallet.beef(note), ['tm_ordinals'])
      await host.submit(wallet.beef(ab), ['tm_names'])
      await until(() => host.writes.outputs === 5, 'all is stored')
      await host.kill()
      const again = await start()
      await again.submit(wallet.beef(a))
      await again.stored()
      await eventually(async () => {
        expect(await again.found('ls_ordinals', { outpoint: note.outpoint(0) })).toEqual([note.outpoint(0)])
        expect(await again.found('ls_names', { name: 'ab' })).toEqual([ab.outpoint(2)])
        expect(await again.found('ls_names', { node: 'ab' })).toEqual([ab.outpoint(1)])
      })
      // Once it has caught up, the next start finds it in the index.
      expect(await (await restart(again)).found('ls_names', { name: 'ab' })).toEqual([ab.outpoint(2)])
    })

    test('a topic is enough for a mint, and the other for its transfer; an alias is as good', async () => {
      const host = await start({
        configure: (each) =>
          each.configureTopicManager(
            'tm_opns',
            new NamesTopicManager({ deployment: wallet.chain.deployment }),
          ),
      })
      const mint = wallet.mint('a', { mined: true })
      const moved = wallet.transfer(mint, 2, { mined: true })
      await host.submit(wallet.beef(wallet.chain.genesis), ['tm_opns'])
      await host.submit(wallet.beef(mint), ['tm_opns'])
      await host.submit(wallet.beef(moved), ['tm_ordinals'])
      await host.stored()
      expect(await host.found('ls_names', { name: 'a' })).toEqual([moved.outpoint(0)])
      const query = { outpoint: moved.outpoint(0), seq: 0 }
      expect(await host.found('ls_ordinals', query)).toEqual([mint.outpoint(2)])
    })

    testOfAny('a query with history is answered', async () => {
      const host = await start()
      const mint = wallet.mint('a')
      const moved = wallet.transfer(mint, 2)
      await submitAll(host, [wallet.chain.genesis, mint, moved])
      await host.stored()
      expect(await host.found('ls_names', { name: 'a', history: true })).toEqual([moved.outpoint(0)])
    })

    test('a database that holds another tree is refused', async () => {
      const host = await start()
      await submitAll(host, [wallet.chain.genesis])
      await host.stored()
      const genesis = { txid: 'ab'.repeat(32), vout: 0 }
      const other = await restart(host, { deployment: { ...wallet.chain.deployment, genesis } })
      await expect(other.found('ls_names', { node: '' })).rejects.toThrow('holds the tree of')
      const admitted = await other.submit(wallet.beef(wallet.mint('a', { mined: true })))
      expect(admitted.tm_names).toEqual([])
      await other.stored()
      const again = await restart(other)
      expect(await again.found('ls_names', { node: '' })).toEqual([wallet.chain.genesis.outpoint(0)])
    })

    test('stands before another service whose migrations, without names, have run', async () => {
      const migrations = [{ up: async () => {}, down: async () => {} }]
      const service = { admissionMode: 'whole-tx', outputAdmittedByTopic: async () => {} } as unknown
      const factory = () => ({ service: service as LookupService, migrations })
      const alone = new OverlayExpress(database.name, '11', 'overlay.test')
      alone.configurePort(0)
      await alone.configureKnex(database.KNEX_URL)
      alone.configureLookupServiceWithKnex('ls_other', factory)
      await alone.configureEngine(false)
      await alone.start()
      await alone.stop()
      const host = await start({
        configure: (each) => each.configureLookupServiceWithKnex('ls_other', factory),
      })
      await submitAll(host, [wallet.chain.genesis])
      await host.stored()
      expect(await host.found('ls_names', { node: '' })).toEqual([wallet.chain.genesis.outpoint(0)])
    })
  })
}
