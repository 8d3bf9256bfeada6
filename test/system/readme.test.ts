import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, readFile, symlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { useServers } from '../support/server/test-server.js'
import { freePort } from '../support/services/free-port.js'

// Runs the commands of the README exactly as written, in a copy of the checkout; only the port differs.

const ROOT = resolve(import.meta.dirname, '../..')
const { folder } = useServers()
/** For a test, in milliseconds: it builds the package, fills a local network and mines five names at 22 bits. */
const PATIENCE = 480_000

/** The README's shell blocks, each as a list of commands. */
async function blocks(): Promise<string[][]> {
  const text = await readFile(join(ROOT, 'README.md'), 'utf8')
  return [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, body = '']) => body.trimEnd().split('\n'))
}

/** A checkout that is installed: the package itself is built in it. */
async function checkout(): Promise<string> {
  const path = join(await folder(), 'minetree')
  const left = ['.git', 'node_modules', 'dist', 'data', 'test', 'trials', 'bench'].map((name) =>
    join(ROOT, name),
  )
  await cp(ROOT, path, { recursive: true, filter: (source) => !left.includes(source) })
  await symlink(join(ROOT, 'node_modules'), join(path, 'node_modules'))
  return path
}

test(
  'a new user starts it, mines a name, resolves it, verifies it, and looks at it',
  async () => {
    const [first = []] = await blocks()
    const walk = (await blocks()).find((lines) => lines.some((line) => line.includes('minetree mine')))
    expect(first).toEqual(['npm install && npm start'])
    const cwd = await checkout()
    const port = await freePort()
    const env = { PATH: process.env.PATH, HOME: await folder(), PORT: String(port) }
    const run = async (command: string) => {
      const child = spawn('bash', ['-c', command], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
      let [stdout, stderr] = ['', '']
      child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
      child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
      const [code] = await once(child, 'close')
      if (code !== 0) throw new Error(`${command} ended with ${code}: ${stderr}`)
      return stdout
    }
    // What `npm install` does after it has fetched what the package depends on.
    await run('npm run prepare')
    const server = spawn('npm', ['start'], { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'inherit'] })
    try {
      await new Promise<void>((ready) =>
        server.stdout.on('data', (chunk: Buffer) => chunk.includes('listening on') && ready()),
      )
      const outputs: string[] = []
      for (const line of walk ?? []) outputs.push(await run(line.replaceAll('8080', String(port))))
      const [mined = '', resolved = '', verified = '', record = '{}', content = ''] = outputs
      const origin = mined.trim().split('\n').at(-1)?.replace('alice ', '') ?? ''
      expect(origin).toMatch(/^[0-9a-f]{64}_2$/)
      expect(resolved).toContain(`origin  ${origin}\n`)
      expect(verified).toContain(`${origin} is the name alice`)
      expect(JSON.parse(record)).toMatchObject({
        name: 'alice',
        origin,
        tip: { outpoint: origin, spent: false },
      })
      expect(content).toBe('alice')
    } finally {
      process.kill(-(server.pid ?? 0), 'SIGTERM')
      await once(server, 'close')
    }
  },
  PATIENCE,
)
