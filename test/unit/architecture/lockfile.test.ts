import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../../..')

interface Entry {
  integrity?: string
  link?: boolean
}

test('every package in the lockfile has the hash of its bytes', () => {
  const { packages } = JSON.parse(readFileSync(resolve(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Entry>
  }
  const installed = Object.entries(packages).filter(
    ([path, { link }]) => /^(.*\/)?node_modules\//.test(path) && !link,
  )
  expect(installed.length).toBeGreaterThan(500)
  const without = installed.filter(([, { integrity = '' }]) => !/^sha(?:256|384|512)-/.test(integrity))
  expect(without.map(([path]) => path)).toEqual([])
})
