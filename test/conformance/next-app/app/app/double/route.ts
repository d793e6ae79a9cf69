import { double } from "../../../../merchant.ts";

export async function POST(request: Request): Promise<Response> {
  return Response.json(double(await request.json()));
}
