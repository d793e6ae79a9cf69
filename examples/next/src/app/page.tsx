export default function Page() {
  return <h1>Payhooks on Next.js</h1>;
}
