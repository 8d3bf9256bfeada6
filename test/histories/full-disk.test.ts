import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { utf8 } from '../../backend/src/protocol/bytes.js'
import { inscriptionScript, OPEN_LOCK } from '../support/protocol/fake-chain.js'
import { HeaderChain } from '../support/server/header-chain.js'
import { FactsHost } from './facts-host.js'
import { BOTH_TOPICS } from './happenings.js'
import { type HistoryTransaction, historyOf } from './history.js'
import { ask } from './host.js'
import { WIDE } from './wide.js'

/** Mounts a file system in memory of so many MiB; undefined where that is not allowed. */
function mounted(size: number): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'minetree-small-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}m`, 'tmpfs', folder], { stdio: 'ignore' })
    return folder
  } catch {
    rmSync(folder, { recursive: true })
    return undefined
  }
}

const disk = mounted(3)
const testHere = disk === undefined ? test.skip : test
afterAll(() => {
  if (disk === undefined) return
  execFileSync('umount', ['-l', disk])
  rmSync(disk, { recursive: true, force: true })
})

testHere(
  'a full disk refuses what it has no room for, keeps the rest whole, and works again when there is room (needs a right to mount)',
  async () => {
    if (disk === undefined) throw new Error('nothing is mounted')
    const { chain } = historyOf([], WIDE)
    const headers = new HeaderChain()
    const host = new FactsHost(WIDE)
    await host.openOn(join(disk, 'store'), headers)
    let made = 0
    /** Each of other bytes, so that none is stored before. */
    const inscribed = (bytes: number): HistoryTransaction => {
      const body = utf8(`${++made} `.repeat(bytes).slice(0, bytes))
      const lockingScript = inscriptionScript({ lock: OPEN_LOCK, contentType: 'text/plain', body })
      const transaction = chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript }] })
      return { ...transaction, spends: [], said: [], needsProof: true }
    }
    const submit = async (transaction: HistoryTransaction): Promise<{ status: number; code?: string }> => {
      const proof = headers.mine([transaction]).proof(transaction.txid)
      const { status, body } = await host.submit([{ transaction, proof }], BOTH_TOPICS)
      const { code } = JSON.parse(body.toString('utf8')) as { code?: string }
      return { status, ...(code !== undefined && { code }) }
    }
    const taken: string[] = []
    const refused: HistoryTransaction[] = []
    // Smaller and smaller ones, so that the disk is full whatever a write needs: of the log, its checkpoint, or the index.
    for (const bytes of [200_000, 20_000, 1000, 100])
      for (let times = 0; times < 3; ) {
        const transaction = inscribed(bytes)
        const answer = await submit(transaction)
        if (answer.status === 200) taken.push(transaction.txid)
        else {
          expect(answer).toEqual({ status: 503, code: 'STORE_FULL' })
          refused.push(transaction)
          times++
        }
      }
    expect(taken.length).toBeGreaterThan(5)
    expect(await host.kept(taken)).toEqual(taken)
    // One for which there was room in the log, and then not in the index, was refused with the others, and is there once there is room.
    const late = await host.kept(refused.map(({ txid }) => txid))
    expect(late.length).toBeLessThan(refused.length)

    execFileSync('mount', ['-o', 'remount,size=64m', disk])
    const [first] = refused
    if (first === undefined) throw new Error('nothing was refused')
    const again = await host.submit(
      [{ transaction: first, proof: headers.branch.proof(first.txid) }],
      BOTH_TOPICS,
    )
    expect(again.status).toBe(200)
    expect(host.rebuiltDifferences()).toEqual({})
    await host.restart()
    for (const txid of [...taken, ...late, first.txid])
      expect((await ask(host.url, { path: `/content/${txid}_0` })).status).toBe(200)
    expect(host.rebuiltDifferences()).toEqual({})
    await host.close()
  },
  300_000,
)
