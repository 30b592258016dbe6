# It's a report (of sales).
class Report
  attr_reader :rows, :title

  def initialize(title, rows = [])
    @title = title
    @rows = rows
  end

  def total
    return 0 if rows.empty?

    rows.sum { |row| row[:price] * row.fetch(:count, 1) }
  end

  def lines
    rows.map do |row|
      if row[:price].nil?
        next
      end
      if row[:count].nil?
        next
      end
      "#{row[:name]} (#{row[:price]})"
    end
  end

  def names
    %w[a b c].each do |name|
      rows.each do |row|
        puts "#{name}: #{row[:name]}"
      end
    end
  end

  def to_s
    <<~TEXT
      #{title} (
      #{lines.join("\n")}
      it's all ]
    TEXT
  end

  def smile
    text.gsub(/[)\]]+/) { |found| ":#{found}" }
  end
end
