import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { useServers } from '../support/test-server.js'

const root = resolve(import.meta.dirname, '../..')
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const dockerfile = read('Dockerfile')
const compose = ['compose.yaml', 'compose.mariadb.yaml', 'compose.mongo.yaml'].map(read)
const servers = useServers()

/** The names that the table of the README begins its rows with. */
const documented = new Set(
  [...read('README.md').matchAll(/^\| ((?:`[A-Z_]+`(?:, )?)+) \|/gm)].flatMap(([, names = '']) =>
    [...names.matchAll(/[A-Z_]+/g)].map(([name]) => name),
  ),
)

test('what the image and the compose file set are settings', () => {
  const [, image = ''] = /^ENV (.*)$/m.exec(dockerfile) ?? []
  // Of the service, and not of the database beside it.
  const ours = compose.map((file) => file.split(/^ {2}(?:mariadb|mongo):$/m)[0] ?? '').join('\n')
  const set = [...image.matchAll(/([A-Z_]+)=/g), ...ours.matchAll(/^ {6}([A-Z_]+): /gm)].map(
    ([, name]) => name,
  )
  expect(set).toEqual(expect.arrayContaining(['KNEX_URL', 'MONGO_URL']))
  for (const name of set.filter((each) => each !== 'NODE_ENV')) expect(documented).toContain(name)
})

test('the image has what the package ships to run', () => {
  const copied = [...dockerfile.matchAll(/^COPY --from=build \/minetree\/(\S+)/gm)].map(([, path]) => path)
  expect(copied.toSorted()).toEqual(['assets', 'dist', 'node_modules', 'package.json'])
  expect(existsSync(join(root, 'assets'))).toBe(true)
  const [, entry = ''] = /^CMD \["node", "([^"]+)", "serve"\]$/m.exec(dockerfile) ?? []
  expect(JSON.parse(read('package.json')).bin).toEqual({ minetree: entry })
  expect(dockerfile).toMatch(/^USER node$/m)
})

test('the health check of the image passes while the service answers, and no longer', async () => {
  const server = await servers.start()
  const [, line = ''] = /HEALTHCHECK[^\n]*\\\n\s+CMD (\[.*\])$/m.exec(dockerfile) ?? []
  const [program, ...parameters] = JSON.parse(line) as string[]
  expect(program).toBe('node')
  const check = async (): Promise<unknown> => {
    const { port } = new URL(server.url)
    const child = spawn(process.execPath, parameters, { env: { PORT: port }, stdio: 'inherit' })
    const [code] = await once(child, 'exit')
    return code
  }
  expect(await check()).toBe(0)
  await server.stop()
  expect(await check()).toBe(1)
})
