import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { testWith } from '../../support/cli/commands.js'
import { partsOf } from '../../support/gateway/range-vectors.js'
import { cut, streamPath, streamsOn } from '../../support/gateway/streams.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'
import { useServers } from '../../support/server/test-server.js'

// The programs that people download with rebuild a stream byte for byte, in parts and from where they broke off.

const servers = useServers()

/** Of chunks that differ in length, some below and some above what the store reads at once. */
const FILE = randomBytes(6_000_000)
const LENGTHS = [700_000, 1, 300_000, 64_000, 0, 1_500_000, 262_144, 2_000_000]
let url: string

// Not before there is a test to run: where all of them are skipped, nobody would stop the server.
beforeAll(async () => {
  const server = await servers.start()
  const { streamOf } = streamsOn(server, new FakeChain())
  const [first] = await streamOf(cut(FILE, LENGTHS), 'application/x-test')
  url = server.url + streamPath(first)
})

/** Runs a program, which has to succeed, and gives all that it said. */
async function run(program: string, ...args: string[]): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)(program, args, { timeout: 60_000 })
  return stdout + stderr
}

/** Whether the file is the stream; of millions of bytes, nobody wants to see which are not. */
async function expectWhole(path: string): Promise<void> {
  expect((await readFile(path)).equals(FILE)).toBe(true)
}

testWith('curl')('curl -r gets it in parts', async () => {
  const folder = await servers.folder()
  const size = 1_000_001
  const parts: Buffer[] = []
  for (let from = 0; from < FILE.length; from += size) {
    const path = join(folder, String(from))
    const said = await run(
      'curl',
      '-sS',
      '-w',
      '%{http_code}',
      '-r',
      `${from}-${from + size - 1}`,
      '-o',
      path,
      url,
    )
    expect(said).toBe('206')
    parts.push(await readFile(path))
  }
  expect(Buffer.concat(parts).equals(FILE)).toBe(true)
})

testWith('curl')('curl -r gets several parts in one answer', async () => {
  const path = join(await servers.folder(), 'parts')
  const ranges = [
    [5_999_000, 5_999_999],
    [0, 99],
    [600_000, 2_700_000],
  ] as const
  const asked = ranges.map(([from, to]) => `${from}-${to}`).join()
  const type = await run('curl', '-sS', '-w', '%{content_type}', '-r', asked, '-o', path, url)
  expect(partsOf(type, await readFile(path))).toEqual(
    ranges.map(([from, to]) => ({
      headers: {
        'content-type': 'application/x-test',
        'content-range': `bytes ${from}-${to}/${FILE.length}`,
      },
      body: FILE.subarray(from, to + 1).toString('hex'),
    })),
  )
})

testWith('curl')('curl -C goes on where it was cut', async () => {
  const path = join(await servers.folder(), 'file')
  await writeFile(path, FILE.subarray(0, 1_234_567))
  expect(await run('curl', '-sS', '-w', '%{http_code} %{size_download}', '-C', '-', '-o', path, url)).toBe(
    `206 ${FILE.length - 1_234_567}`,
  )
  await expectWhole(path)
})

testWith('wget')('wget -c goes on where it was cut', async () => {
  const path = join(await servers.folder(), 'file')
  await writeFile(path, FILE.subarray(0, 3_000_000))
  expect(await run('wget', '-c', '-S', '-O', path, url)).toContain('206 Partial Content')
  await expectWhole(path)
})

testWith('aria2c')('aria2c gets it over four connections at once', async () => {
  const folder = await servers.folder()
  const split = ['-x4', '-s4', '-k1M', '--file-allocation=none', '--no-conf=true']
  const said = await run('aria2c', ...split, '--log=-', '--log-level=info', '-d', folder, '-o', 'file', url)
  expect(said.match(/^Range: bytes=[1-9]/gm)?.length).toBeGreaterThan(1)
  await expectWhole(join(folder, 'file'))
})
